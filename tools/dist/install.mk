# SPDX-License-Identifier: MIT
# Installation: one list, for both ways.  source:target-below-PREFIX:mode

INSTALLED := $(BUILD)/mmgate:bin/mmgate:755 \
	$(BUILD)/libmmgate.so:lib/mmgate/libmmgate.so:755 \
	tools/man/mmgate.1:share/man/man1/mmgate.1:644 \
	README.md:share/doc/mmgate/README.md:644 \
	LICENSE:share/doc/mmgate/LICENSE:644

field = $(word $2,$(subst :, ,$1))

install: all
	@$(foreach i,$(INSTALLED),install -D -m $(call field,$i,3) \
		$(call field,$i,1) $(DESTDIR)$(PREFIX)/$(call field,$i,2) &&) :

uninstall:
	@rm -f $(foreach i,$(INSTALLED),$(DESTDIR)$(PREFIX)/$(call field,$i,2))
	@-rmdir $(DESTDIR)$(PREFIX)/lib/mmgate $(DESTDIR)$(PREFIX)/share/doc/mmgate \
		2>/dev/null

.PHONY: install uninstall
