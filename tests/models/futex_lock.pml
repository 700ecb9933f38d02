/* SPDX-License-Identifier: MIT */
/*
 * lock_mutex.c and lock_spin.c in the abstract: what may happen to the word,
 * with a futex that compares and sleeps in one step.  The explorer beside this
 * file checks the code itself; this says that the idea is right, for more
 * threads and rounds than the code can be run for.
 *
 * -DTHREADS=n -DROUNDS=n, and one of
 *   -DTIME_OUTS=n  so many sleeps end early, each at any moment
 *   -DABANDON      the lock is given up at any moment
 *   -DSPIN         looks at the word before it sleeps
 *   -DRESERVE=n    so many releases keep the lock for those who sleep
 *   -DFLAW_KEEP    negative control: also when nobody does
 *   -DFLAW_WAKE    negative control: wakes when nobody is said to sleep
 *   -DFLAW_LOOK    negative control: a waiter does not look at what it writes
 *                  CONTENDED over
 */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TIME_OUTS
#define TIME_OUTS 0
#endif

#ifndef RESERVE
#define RESERVE 0
#endif

#define FREE 0
#define HELD 1
#define CONTENDED 2
#define RESERVED 3
#define ABANDONED 4

byte word;
byte inside;
byte time_outs = TIME_OUTS;
byte reserve = RESERVE;
bool given_up;
bool asleep[THREADS];

inline wake_one()
{
	atomic {
		woke = true;
		if
		:: asleep[0] -> asleep[0] = false
#if THREADS > 1
		:: asleep[1] -> asleep[1] = false
#endif
#if THREADS > 2
		:: asleep[2] -> asleep[2] = false
#endif
#if THREADS > 3
		:: asleep[3] -> asleep[3] = false
#endif
		:: else -> woke = false
		fi
	}
}

inline wake_all()
{
	atomic {
		i = 0;
		do
		:: i < THREADS -> asleep[i] = false; i++
		:: else -> break
		od;
		i = 0
	}
}

inline abandon()
{
	word = ABANDONED;
	wake_all()
}

/* From `from` to `to` if it is `from`; done says whether it was. */
inline change(from, to)
{
	atomic {
		seen = word;
		done = (word == from);
		if
		:: done -> word = to
		:: else
		fi
	}
}

/* gone: the caller must not sleep again. */
inline lock_sleep()
{
	atomic {
		if
		:: word == on -> asleep[me] = true
		:: else
		fi
	};
	if
	:: !asleep[me]
	:: atomic {
		asleep[me] && time_outs > 0 ->
		time_outs--;
		asleep[me] = false;
		gone = true
	   }
	fi
}

inline mark()
{
#ifdef FLAW_LOOK
	atomic { word = CONTENDED; on = CONTENDED; done = true }
#else
	done = (seen == CONTENDED || seen == RESERVED);
	on = (seen == RESERVED -> RESERVED : CONTENDED);
	if
	:: seen == HELD -> change(HELD, CONTENDED)
	:: else
	fi
#endif
}

inline acquire()
{
	got = false;
	gone = false;
	mine = HELD;
#ifdef SPIN
	change(FREE, HELD);
	got = done;
#endif
	do
	:: got -> break
	:: else ->
		change(FREE, mine);
		if
		:: !done && seen == RESERVED && mine == CONTENDED ->
			change(RESERVED, CONTENDED)
		:: else
		fi;
		if
		:: done -> got = true; break
		:: !done && seen == FREE
		:: !done && seen != FREE && (seen == ABANDONED || gone) -> break
		:: else ->
			mark();
			if
			:: done -> lock_sleep(); mine = CONTENDED
			:: else
			fi
		fi
	od
}

/* A newcomer may have stood back from a lock that was kept for nobody. */
inline release_for_nobody()
{
	if
#ifndef FLAW_KEEP
	:: !woke && next == RESERVED ->
		change(RESERVED, FREE);
		if
		:: done -> wake_one()
		:: else
		fi
#endif
	:: else
	fi
}

inline release()
{
	change(HELD, FREE);
	if
#ifdef FLAW_WAKE
	:: done -> wake_one()
#endif
	:: !done && seen == CONTENDED ->
		next = (reserve > 0 -> RESERVED : FREE);
		reserve = (reserve > 0 -> reserve - 1 : 0);
		change(CONTENDED, next);
		if
#ifndef FLAW_WAKE
		:: done -> wake_one(); release_for_nobody()
#endif
		:: else
		fi
	:: else
	fi
}

proctype thread(byte me)
{
	byte round, seen, mine, on, next, i;
	bool got, gone, done, woke;

	do
	:: round == ROUNDS -> break
	:: else ->
		round++;
		acquire();
		if
		:: got ->
			inside++;
			assert(inside == 1 || given_up);
			inside--;
			if
			:: given_up
			:: else -> release() /* perhaps a late one */
			fi
		:: else
		fi
	od
}

#ifdef ABANDON
proctype gate()
{
	byte i;

	given_up = true;
	abandon()
}
#endif

init
{
	byte n;

	atomic {
		do
		:: n < THREADS -> run thread(n); n++
		:: else -> break
		od;
#ifdef ABANDON
		run gate()
#endif
	}
}
