/* SPDX-License-Identifier: MIT */
/*
 * instrument: put before a file of shim/ (-include), makes its atomics, futex
 * calls and clocks steps of explore.h.
 *
 * Ticks only feed the stamps of wake_ns, which decide nothing, so they stand
 * still.
 */
#ifndef MMGATE_INSTRUMENT_H
#define MMGATE_INSTRUMENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "clock.h"
#include "explore.h"
#include "sys.h"

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_sub_explicit

#define MODEL_PICK(p, name)                                                    \
	_Generic((p), _Atomic uint32_t *                                       \
		 : model_##name##32, const _Atomic uint32_t *                  \
		 : model_##name##32, _Atomic uint64_t *                        \
		 : model_##name##64, const _Atomic uint64_t *                  \
		 : model_##name##64)

#define atomic_load(p) MODEL_PICK(p, load)(p)
#define atomic_load_explicit(p, order) atomic_load(p)
#define atomic_store(p, v) MODEL_PICK(p, store)(p, v)
#define atomic_store_explicit(p, v, order) atomic_store(p, v)
#define atomic_exchange(p, v) MODEL_PICK(p, exchange)(p, v)
#define atomic_exchange_explicit(p, v, order) atomic_exchange(p, v)
#define atomic_compare_exchange_strong(p, e, v) MODEL_PICK(p, swap)(p, e, v)
#define atomic_compare_exchange_strong_explicit(p, e, v, yes, no)              \
	atomic_compare_exchange_strong(p, e, v)
#define atomic_compare_exchange_weak(p, e, v) MODEL_PICK(p, swap)(p, e, v)
#define atomic_compare_exchange_weak_explicit(p, e, v, yes, no)                \
	atomic_compare_exchange_weak(p, e, v)
#define atomic_fetch_add(p, v) MODEL_PICK(p, add)(p, v)
#define atomic_fetch_add_explicit(p, v, order) atomic_fetch_add(p, v)
#define atomic_fetch_sub(p, v) MODEL_PICK(p, add)(p, -(v))
#define atomic_fetch_sub_explicit(p, v, order) atomic_fetch_sub(p, v)

#define sys_futex_wait model_futex_wait
#define sys_futex_wake model_futex_wake
#define clock_ticks() UINT64_C(1)
#define clock_ticks_after() UINT64_C(1)
#define clock_monotonic model_clock

#endif
