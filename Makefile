# The project's commands; `make` alone tells them.
ENV ?= default
KERNELS ?=
ROUNDS ?=
RESERVE_HUGEPAGES ?=
PAGES ?=
SET_THP_SIZES ?=
# Names as common as these are taken from the command line alone, not from the environment.
THREADS =
CORES =
PLACEMENT =
SMT =
CPUS =
MEMORY =
PEERS ?=
QUICK ?=
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
JOBS ?= 1
VERSION ?=
REVISION ?=
PREFIX ?=
RELEASE ?=
GROUP ?=
DEFAULT ?=
export BASE IMAGE ENGINE PACKAGES TARGET REFERENCE ACCEPT PUBLISH THRESHOLD KERNELS ROUNDS

export BUNDLE KEY FROM JOBS

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests stack compare peers man check test test-container test-packages dist lock bundle deploy undeploy image regression ci-generate ci-rebuild pin clean

help:
	@echo 'make compare    set up, build, compare, report'
	@echo '                ENV=default|quick|...  KERNELS=schoenauer_triad,...  ROUNDS=n  RESERVE_HUGEPAGES=1'
	@echo '                UNTIL=2%  BUDGET=30m: rounds until intervals are so narrow (docs/statistics.md)'
	@echo '                PAGES=thp:64k,hugetlbfs:1g  SET_THP_SIZES=1'
	@echo '                THREADS=n|CORES=n  PLACEMENT=compact,scatter  SMT=avoid,use  CPUS=0-3,8  MEMORY=first-touch,interleave,bind:0'
	@echo '                (docs/placement.md)'
	@echo '                SITE=name: compilers and packages of envs/sites/name, not what is detected (docs/new-site.md)'
	@echo '                BUILDER=auto|spack|cmake (auto: CMake presets where Spack cannot be had)'
	@echo 'make peers      set up, build, and compare our kernels with peer benchmarks that are installed (docs/peers.md)'
	@echo '                PEERS=likwid-bench,stream,...  KERNELS=stream_triad,...  ROUNDS=n  QUICK=1'
	@echo '                PLACEMENT=scatter  SMT=use  MEMORY=bind'
	@echo 'make setup      what this machine lacks: system packages, Spack, Python environment, detected compilers'
	@echo 'make setup-tests     and what tests need: Slurm, browser, cross compilers with HDF5 for A64FX (docs/a64fx.md)'
	@echo 'make stack      set up, and build the environment ENV with its modules'
	@echo '                UPSTREAMS=folder: what a deployed release has installed is used and not built (docs/deploy.md)'
	@echo '                LOCK=folder: exactly what make lock wrote there'
	@echo 'make man        the manual page: man pagewise, after . setup/activate.sh'
	@echo 'make dist       the source archive of a release, for Spack (docs/release.md)  VERSION=0.1.0  REVISION=HEAD'
	@echo 'make lock       lockfile and manifest of a released environment  ENV=release TARGET=host|x86_64_v3|... LOCK=folder'
	@echo 'make bundle     all that a site without network needs, in one signed archive (docs/air-gap.md)'
	@echo '                ENV=release TARGET=... OUT=file.tar KEY=fingerprint; there: make stack BUNDLE=file.tar KEY=fingerprint'
	@echo 'make deploy     a release with its modules for all users of a centre (docs/deploy.md)'
	@echo '                PREFIX=/apps/pagewise RELEASE=0.1.0 ENV=release GROUP=group DEFAULT=1 REVISION=... LOCK=folder'
	@echo 'make undeploy   take a release away from there  PREFIX=/apps/pagewise RELEASE=0.1.0'
	@echo 'make image      an image for running, or STAGE=build for building (docs/containers.md)  BASE=image@sha256:... TARGET=...'
	@echo 'make regression compare, and hold the result against a stored one, for CI (docs/ci.md)  ENV=... REFERENCE=folder ACCEPT=1'
	@echo 'make check      kernels with both compilers, the runner, linters'
	@echo 'make test       check, and Spack, Lmod and the whole way from concretizing to the report'
	@echo 'make test-container  build images and run them (as root, with buildah and debootstrap)'
	@echo 'make test-packages   the tests in the recipes, on what is installed of ENV'
	@echo 'make pin        pin the Python environment anew (needs uv)'
	@echo 'make clean      remove what was built; Spack and the Python environment stay'

setup:
	@setup/bootstrap run

setup-tests:
	@setup/bootstrap run test

stack: setup
	@BUILDER='$(BUILDER)' LOCK='$(LOCK)' setup/build '$(ENV)'

placed = $(if $(PLACEMENT),--placement '$(PLACEMENT)') $(if $(SMT),--smt '$(SMT)') $(if $(MEMORY),--memory '$(MEMORY)')

compare: stack
	@./pagewise compare --env '$(ENV)' $(if $(KERNELS),--kernels '$(KERNELS)') $(if $(ROUNDS),--rounds '$(ROUNDS)') \
	    $(if $(UNTIL),--until '$(UNTIL)') $(if $(BUDGET),--budget '$(BUDGET)') \
	    $(if $(RESERVE_HUGEPAGES),--reserve-hugepages) $(if $(PAGES),--pages '$(PAGES)') \
	    $(if $(SET_THP_SIZES),--set-thp-sizes) $(if $(THREADS),--threads '$(THREADS)') $(if $(CORES),--cores '$(CORES)') \
	    $(if $(CPUS),--cpus '$(CPUS)') $(placed)

peers: stack
	@./pagewise peers --env '$(ENV)' $(if $(PEERS),--peers '$(PEERS)') $(if $(KERNELS),--kernels '$(KERNELS)') \
	    $(if $(ROUNDS),--rounds '$(ROUNDS)') $(if $(QUICK),--quick) $(placed)

man: setup
	@setup/shell-files
	@echo 'man .pagewise/share/man/man1/pagewise.1'

check: setup-tests
	@tests/lint
	@tests/kernels
	@# More processes than processors: these tests wait longer than they compute.
	@.pagewise/venv/bin/python -m pytest --numprocesses $$((2 * $$(nproc))) -m 'not long' tests/runners
	@.pagewise/venv/bin/python -m pytest --numprocesses auto --import-mode=importlib -m 'not long' kernels/mini

test: check
	@tests/kernels long
	@.pagewise/venv/bin/python -m pytest --numprocesses $$((2 * $$(nproc))) -m long tests/runners
	@.pagewise/venv/bin/python -m pytest --numprocesses auto --import-mode=importlib -m long kernels/mini
	@# What takes longest begins first.
	@.pagewise/venv/bin/python -m pytest --numprocesses auto --dist loadgroup -m 'not container' \
	    $(wildcard tests/e2e) tests/stack

test-container:
	@setup/bootstrap run test container
	@.pagewise/venv/bin/python -m pytest -m container tests/stack/test_container.py

test-packages: stack
	@setup/test-packages '$(ENV)'

dist:
	@python3 setup/dist.py $(if $(VERSION),--version '$(VERSION)') $(if $(REVISION),--revision '$(REVISION)')

lock: setup
	@setup/lock '$(ENV)' '$(TARGET)' $(if $(LOCK),'$(LOCK)')

bundle: BUNDLE =
bundle: setup
	@LOCK='$(LOCK)' setup/bundle '$(ENV)' '$(TARGET)' $(if $(OUT),'$(OUT)')

deploy: ENV = release
deploy:
	@ENV='$(ENV)' GROUP='$(GROUP)' REVISION='$(REVISION)' DEFAULT='$(DEFAULT)' LOCK='$(LOCK)' setup/deploy '$(PREFIX)' '$(RELEASE)'

undeploy:
	@setup/undeploy '$(PREFIX)' '$(RELEASE)'

image:
	@ENV='$(ENV)' setup/image $(STAGE)

regression:
	@ci/regression '$(ENV)'

ci-generate: setup
	@ci/packages generate '$(ENV)'

ci-rebuild: setup
	@ci/packages rebuild

# Pin the Python environment anew; needs uv.
pin:
	@cd setup && pin="uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-emit-index-url" && \
	    $$pin --custom-compile-command 'make pin' --extra cluster ../runners/pyproject.toml requirements.in \
	    -o requirements.lock && \
	    $$pin --custom-compile-command 'make pin' --constraint requirements.lock requirements-test.in \
	    -o requirements-test.lock

clean:
	@rm -rf .pagewise/build .pagewise/presets .pagewise/opt .pagewise/stage .pagewise/modules .pagewise/module-trees \
	    .pagewise/stamps/solved-* .pagewise/stamps/installed-* .pagewise/spack-tests
	@find . -path ./.pagewise -prune -o \( -name spack.lock -o -name .spack-env -o -name __pycache__ \) -prune \
	    -exec rm -rf {} +
