# The project's commands; `make` alone lists them with their variables (setup/help.txt).
# These common names are only taken from the command line, not from the environment: shells and images set ENV.
ENV = default
GROUP =
ARGS =
BUILDER ?= auto
SITE ?= $(PAGEWISE_SITE)
export PAGEWISE_SITE := $(SITE)
UPSTREAMS ?= $(PAGEWISE_UPSTREAMS)
export PAGEWISE_UPSTREAMS := $(UPSTREAMS)
TARGET ?= host
LOCK ?=
BUNDLE ?=
KEY ?=
FROM ?= cache
JOBS ?=
REVISION ?=
PREFIX ?=
STUBS ?= 1
RELEASE ?=
DEFAULT ?=
export BASE TAG IMAGE ENGINE PACKAGES TARGET REFERENCE ACCEPT PUBLISH THRESHOLD
export BUILDER BUNDLE DEFAULT ENV KEY FROM JOBS NO_INSTALL STUBS

# Recipes read values as variables of their shell: no value becomes text of a command. Make itself passes on those that are
# given; ARGS alone is text of a command.
quoted = '$(subst ','\'',$1)'

# Refuse variables that the help does not list, because they would have no effect.
given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
known := $(sort $(shell LC_ALL=C grep -oE '[A-Z_]+=' setup/help.txt | tr -d =))
unknown := $(firstword $(filter-out $(known) PAGEWISE_% PIP_%,$(given)))
nearest = import difflib, sys; print(*difflib.get_close_matches(sys.argv[1].upper(), sys.argv[2:], 1, 0))
ifneq ($(unknown),)
$(error unknown variable $(unknown): did you mean $(shell python3 -c '$(nearest)' $(call quoted,$(unknown)) $(known))? `make` lists all variables)
endif

# What only Spack can do is refused before anything is installed.
ifneq ($(filter spack,$(BUILDER))$(LOCK)$(BUNDLE),)
export PAGEWISE_REQUIRE_SPACK := 1
endif
lock bundle publish test-packages ci-generate ci-rebuild: export PAGEWISE_REQUIRE_SPACK := 1

# on NAME: 1 if the variable means yes, else empty.
on = $(if $(filter-out 1 yes true 0 no false,$($1))$(word 2,$($1)),$(error $1=$($1) is neither yes (1, yes, true) nor no (0, no, false)))$(if \
    $(filter 1 yes true,$($1)),1)
switches := $(sort $(shell LC_ALL=C grep -oE '[A-Z_]+=[01]([: ]|$$)' setup/help.txt | cut -d = -f 1))
$(foreach name,$(switches),$(eval override $(name) := $(call on,$(name))))

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests stack compare gallery docs check test test-systems test-all test-packages lock bundle publish deploy undeploy image regression ci-generate ci-rebuild pin clean

help:
	@cat setup/help.txt

setup:
	@setup/bootstrap

setup-tests:
	@setup/bootstrap test

stack: setup
	@setup/build "$$ENV"

# A fresh checkout compares two configurations before it builds the others of the default environment.
compare: export FIRST_LOOK := $(if $(filter default,$(ENV)),$(if $(LOCK)$(BUNDLE)$(ARGS)$(SITE),,1))
compare: stack
	@./pagewise kernels --env "$$ENV" $(ARGS)

gallery: setup
	@setup/gallery $(ARGS)

docs: setup-tests
	@.pagewise/venv/bin/python setup/docs_site.py .pagewise/docs
	@echo .pagewise/docs/index.html

# Compiled once, also for users whose Python writes no compiled files. A test that hangs fails after `--timeout` seconds.
pytest = env -u PYTHONDONTWRITEBYTECODE .pagewise/venv/bin/python -m pytest --timeout 1500
# Tests of the runner and of the stack wait, too: more processes than processors. With `worksteal` most tests of a file run
# in one process and share its fixtures.
runner = $(pytest) --numprocesses $$((2 * $$(nproc))) --dist worksteal
stack = $(pytest) --numprocesses $$(($$(nproc) + 1)) --dist loadgroup --no-loadscope-reorder
kernels = .pagewise/venv/bin/python tests/kernels.py

check: setup-tests
	@tests/part lint tests/lint
	@tests/part kernels $(kernels)
	@tests/part runner $(runner) -m 'not long and not release' tests/runners

test: check
	@tests/part 'long kernels' $(kernels) long
	@tests/part 'long runner' $(runner) -m 'long and not release' tests/runners
	@tests/part stack $(stack) -m 'not release and not systems' $(wildcard tests/e2e) tests/stack

test-systems:
	@setup/bootstrap test container
	@tests/part systems $(pytest) --timeout 3000 --numprocesses 2 --dist loadgroup -m 'systems and not release' tests/e2e tests/stack

test-all: test test-systems
	@tests/part 'all kernels' $(kernels) all
	@tests/part 'release of the runner' $(runner) -m release tests/runners
	@tests/part 'release of the stack' $(stack) --timeout 7200 -m release tests/e2e tests/stack tests/programs

test-packages: stack
	@setup/test-packages "$$ENV"

lock: setup
	@setup/lock "$$ENV" "$$TARGET" $${LOCK:+"$$LOCK"}

lock bundle publish deploy: ENV = release
bundle: BUNDLE =
bundle: setup
	@setup/bundle "$$ENV" "$$TARGET" $${OUT:+"$$OUT"}

publish: setup
	@setup/publish "$$ENV" "$$TARGET" "$$CACHE"

deploy:
	@setup/deploy "$$PREFIX" "$$RELEASE"

undeploy:
	@setup/undeploy "$$PREFIX" "$$RELEASE"

image:
	@setup/image $${STAGE:+"$$STAGE"}

regression:
	@ci/regression "$$ENV" $(ARGS)

ci-generate: setup
	@ci/packages generate "$$ENV"

ci-rebuild: setup
	@ci/packages rebuild

# Update the pins of the Python environment; needs uv.
pin:
	@cd setup && pin="uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-emit-index-url" && \
	    $$pin --custom-compile-command 'make pin' --extra cluster ../runners/pyproject.toml requirements.in \
	    -o requirements.lock && \
	    $$pin --custom-compile-command 'make pin' --constraint requirements.lock requirements-test.in \
	    -o requirements-test.lock

clean:
	@rm -rf .pagewise/build .pagewise/presets .pagewise/opt .pagewise/stage .pagewise/modules .pagewise/module-trees \
	    .pagewise/stamps/solved-* .pagewise/stamps/installed-* .pagewise/kept .pagewise/spack-tests
	@find . -path ./.pagewise -prune -o \( -name spack.lock -o -name .spack-env -o -name __pycache__ \) -prune \
	    -exec rm -rf {} +
