# What is installed and handed out: a part of the Makefile.

# Configurations and units name /usr/local; PREFIX goes into what is installed.
with_prefix = sed 's|/usr/local|$(PREFIX)|g' $1 >$(DESTDIR)$(PREFIX)/$2 && chmod 644 $(DESTDIR)$(PREFIX)/$2
.PHONY: install
install: all ## install under PREFIX (/usr/local), staged into DESTDIR
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin libexec/postrider lib/systemd/system lib/sysusers.d lib/tmpfiles.d \
		$(addprefix share/,man/man1 man/man5 man/man7 man/man8 postrider bash-completion/completions zsh/site-functions))
	install -m 755 $(BIN)/postrider $(BIN)/postriderd $(BIN)/postrider-train $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(BIN)/postrider-supervisor $(BIN)/postrider-lab $(BIN)/postrider-automl $(DESTDIR)$(PREFIX)/libexec/postrider/
	for n in 1 5 7 8; do install -m 644 docs/man/*.$$n $(DESTDIR)$(PREFIX)/share/man/man$$n/ || exit 1; done
	install -m 644 configs/postrider.bash-completion $(DESTDIR)$(PREFIX)/share/bash-completion/completions/postrider
	install -m 644 configs/postrider.zsh-completion $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_postrider
	cp -r $(addprefix configs/,schemas grids designs campaigns profiles worlds clusters traces monitoring) $(DESTDIR)$(PREFIX)/share/postrider/
	install -m 644 configs/systemd/network.conf $(DESTDIR)$(PREFIX)/share/postrider/
	$(call with_prefix,configs/postrider.json,share/postrider/postrider.json)
	$(call with_prefix,configs/systemd/postrider.service,lib/systemd/system/postrider.service)
	install -m 644 configs/systemd/postrider.socket configs/systemd/postrider-page.socket configs/systemd/postrider-page.service $(DESTDIR)$(PREFIX)/lib/systemd/system/
	install -m 644 configs/systemd/postrider.sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/postrider.conf
	install -m 644 configs/systemd/postrider.tmpfiles.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/postrider.conf

# In a copy: setuptools leaves files beside what it builds. No network: setuptools and wheel are Debian's.
PYTHON    ?= /usr/bin/python3
WHEEL_DIR ?= build/wheel
.PHONY: wheel
wheel: ## the Python package as a wheel, in build/wheel (Debian: python3-setuptools, python3-wheel)
	@rm -rf build/python && mkdir -p build/python $(WHEEL_DIR) && cp -r python VERSION build/python/
	cd build/python/python && SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-315532800} $(PYTHON) setup.py -q bdist_wheel -d $(abspath $(WHEEL_DIR))

# The same tree gives the same bytes: names in order, no owner, the time of the last change.
DIST_DIR ?= build/dist
.PHONY: dist
dist: ## a reproducible source tarball of the files git knows, in build/dist
	@mkdir -p $(DIST_DIR)
	@git ls-files -z | tar --null -T - --sort=name --mtime=@$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} --owner=0 --group=0 \
		--numeric-owner --mode=u=rwX,go=rX --transform 's|^|postrider-$(shell cat VERSION)/|' -cf - | gzip -9n >$(DIST_DIR)/postrider-$(shell cat VERSION).tar.gz
	@echo $(DIST_DIR)/postrider-$(shell cat VERSION).tar.gz

DEB_PACKAGES := debhelper dh-python python3-all python3-setuptools lintian dpkg-dev
.PHONY: deb
deb: deps ## the Debian packages postrider and python3-postrider, in build/deb
	@tests/install-packages.sh $(DEB_PACKAGES)
	debian/make-deb.sh build/deb
	@# The project has no public mail address yet.
	lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog --fail-on error,warning build/deb/postrider_$(shell cat VERSION)_*.changes

.PHONY: test-deb
test-deb: ## build the packages, install them into a clean root, run a job, upgrade, purge (needs root and a mirror; minutes)
	@tests/install-packages.sh $(DEB_PACKAGES) debootstrap
	@tests/deb.sh
