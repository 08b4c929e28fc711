# `make demo` and `make test` set up everything they need in .venv; nothing else has to be installed but
# Python >= 3.11, a C++20 compiler and make. Stamp files make the second run quick and free of the network.
PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Python keeps what it compiles, whatever the shell says: else each of the hundreds of processes compiles it again.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check
TESTED := --constraint constraints.txt
# The C++ tests link the objects of the extension: both are built here.
BUILD := --no-build-isolation --config-settings=build-dir=build/release
FUZZ_SECONDS ?= 60
MUTANTS ?= python/topoplace/policies python/topoplace/engine python/topoplace/cluster --count 20
FUZZ_PARSERS ?= hwloc_xml system_xml topo_matrix kubernetes_labels kfd gres topology_conf

CPP_SOURCES := $(shell find cpp -name '*.[ch]pp' -o -name '*.h')
LIBRARY_SOURCES := CMakeLists.txt $(filter cpp/include/% cpp/src/% cpp/bindings/%,$(CPP_SOURCES))
PACKAGES := python lab/topoplace_lab hosts/topoplace_hosts
PACKAGE_SOURCES := $(shell find $(PACKAGES) -name '*.py' -o -name '*.pyi')

BASE ?= main
TESTS ?= tests lab/tests hosts/tests
VERSION ?= 26.05

.PHONY: help demo test test-core test-deep collect reproductions check lint cpp-test shipped counts sanitize sanitize-c thread-sanitizer aarch64 wasm32 test-kubernetes test-slurm mutants tidy fuzz fuzz-parsers bench bench-each bars stubs papers trust messages format hooks newest reproducible docs clean always
.DELETE_ON_ERROR:
# Commands run one after the other, but for the stages of `make test`: these share two cores.
ifndef STAGES
.NOTPARALLEL:
endif
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

help:  # list the commands that most people need; CONTRIBUTING.md names the others
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-17s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.extension  ## a job on a machine in use, and a queue of jobs under some policies; pictures go to out/
	topoplace place dgx1-v100 --busy 0,5 --gpus 4 -o out
	topoplace simulate dgx1-v100 -o out
	@echo "Open out/report.html, all jobs under each policy. Click GPUs yourself: .venv/bin/topoplace explore dgx1-v100"

test:  ## everything a change must pass: what is built and checked side by side, then the Python tests
	@$(MAKE) --no-print-directory $(VENV)/.build
	@CMAKE_BUILD_PARALLEL_LEVEL=2 $(MAKE) --no-print-directory -j2 $(SYNC) STAGES=yes \
		sanitize lint collect counts wasm32 build/.wheel || \
		{ echo "make test: a stage failed; what it says stands above its line with ***" >&2; exit 1; }
	python -m pytest -n 4 --hypothesis-profile=ci --durations=15 -m "not reproduction and not deep"

test-deep: $(VENV)/.extension $(VENV)/.dependencies  ## every Python test, and as many examples as a night allows; TESTS=tests/kernels for some
	python -m pytest -n auto --hypothesis-profile=deep $(TESTS)

# A virtual environment in which the wheel of the core is all that is ours.
build/core/.installed: build/.wheel
	$(PYTHON) -m venv --clear --without-pip build/core
	$(VENV)/bin/python -m pip --python build/core/bin/python install --quiet --disable-pip-version-check $(TESTED) --group core-test \
		"topoplace[cli,plot,networkx,discovery,nvml] @ file://$(firstword $(wildcard $(CURDIR)/build/wheel/topoplace-*.whl))"
	@touch $@

test-core: build/core/.installed  # the tests of the core, without the lab and the hosts
	build/core/bin/python -m pytest -n auto --maxprocesses=8 --hypothesis-profile=ci -m "not reproduction and not deep" \
		tests --ignore=tests/house

$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "topoplace needs Python 3.11 or newer, and \
	$(PYTHON) is `$(PYTHON) --version 2>&1`; name another one: make PYTHON=python3.12" >&2; exit 1; }
	@command -v $${CXX:-c++} >/dev/null || { echo "topoplace needs a C++20 compiler, and there is no $${CXX:-c++}; name one: \
	make CXX=g++-13" >&2; exit 1; }
	@rm -rf $(VENV) build/release
	$(PYTHON) -m venv $(VENV)
	$(PIP) "pip>=25.1"
	@touch $@

# The editable install maps modules to files: it has to be renewed when a file comes, goes or moves.
$(VENV)/.modules: $(VENV)/.pip always
	@find $(PACKAGES) -name '*.py' | sort | cmp -s - $@ || find $(PACKAGES) -name '*.py' | sort >$@

# What building needs, then what running needs, then what developing needs on top. Two pips never work at once.
$(VENV)/.build: $(VENV)/.pip pyproject.toml constraints.txt
	$(PIP) $(TESTED) --group build
	@touch $@

$(VENV)/.extension: $(VENV)/.build $(VENV)/.modules lab/pyproject.toml hosts/pyproject.toml $(LIBRARY_SOURCES)
	$(PIP) $(TESTED) $(BUILD) --editable '.[all]' --editable lab --editable hosts
	@touch $@

$(VENV)/.dependencies: $(VENV)/.build | $(if $(STAGES),$(VENV)/.extension)
	$(PIP) $(TESTED) --no-compile --group dev  # most modules are never imported: kubernetes alone has 74 MB of them
	@touch $@

$(VENV)/.wasm32: $(VENV)/.dependencies
	$(PIP) $(TESTED) --no-compile --group wasm32  # a compiler of 411 MB
	@touch $@

lint: $(VENV)/.extension $(VENV)/.dependencies  ## style, types, layers, sizes of functions, the stub
	ruff check .
	ruff format --check .
	clang-format --dry-run -Werror $(CPP_SOURCES)
	python tools/check_functions.py cpp $(PACKAGES)
	python tools/check_lines.py
	mypy
	pyright
	lint-imports --no-logo
	python tools/check_stub.py
	python tools/check_messages.py
	python tools/write_trust.py --check

collect: $(VENV)/.extension $(VENV)/.dependencies  # compiles the tests once, not once in each process
	python -m pytest --collect-only -qq >build/tests.txt || { cat build/tests.txt >&2; exit 1; }

reproductions: $(VENV)/.extension $(VENV)/.dependencies  # three papers in their quick forms, which `make test` leaves out
	python -m pytest -n 2 --hypothesis-profile=ci -m reproduction

check: $(VENV)/.extension $(VENV)/.dependencies  ## before a commit: quick lint, and the tests of what changed since BASE
	ruff check .
	ruff format --check .
	python tools/check_functions.py cpp $(PACKAGES)
	mypy
	lint-imports --no-logo
	python tools/test_changed.py $(BASE)

stubs: $(VENV)/.extension $(VENV)/.dependencies  # regenerate _core.pyi after a change in cpp/bindings
	python tools/check_stub.py --write

papers: $(VENV)/.extension $(VENV)/.dependencies  ## run all reproductions of papers and keep their records (half an hour of CPU time)
	python tools/write_papers.py

trust: $(VENV)/.extension $(VENV)/.dependencies  # coverage, mutants, races, fuzzing: kept for the site (three hours of CPU time); TRUST="kernels" for a part
	$(PIP) --group trust
	python tools/write_trust.py $(TRUST)

messages: $(VENV)/.dependencies  # regenerate the descriptors of messages after a change in a .proto file
	python tools/check_messages.py --write

format: $(VENV)/.dependencies  ## let ruff and clang-format rewrite
	ruff check --fix .
	ruff format .
	clang-format -i $(CPP_SOURCES)

hooks: $(VENV)/.dependencies  # check each commit with the tools of .venv
	prek install

cpp-test: $(VENV)/.extension $(VENV)/.dependencies  ## the C++ library alone, without Python; each header alone
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --target all all_verify_interface_header_sets private_headers -- --quiet
	ctest --preset release

shipped: $(VENV)/.extension $(VENV)/.dependencies  # what `make sanitize` leaves out
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --target shipped -- --quiet
	ctest --preset shipped

counts: shipped  # instructions of fixed cases beside those kept (needs valgrind); COUNTS=--write keeps today's
	python tools/count_instructions.py build/release/cpp/tests/instructions $(COUNTS)

sanitize: $(VENV)/.build  # the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer
	cmake --preset sanitizers --log-level=WARNING
	cmake --build --preset sanitizers -- --quiet
	ctest --preset sanitizers

sanitize-c: $(VENV)/.extension $(VENV)/.dependencies  # the C interface inside Python, under AddressSanitizer and UndefinedBehaviorSanitizer
	TOPOPLACE_C_FLAGS="-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all" \
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 python -m pytest -n 0 tests/c/test_c_arguments.py tests/c/test_c_interface.py

thread-sanitizer: $(VENV)/.build  # kernels asked by several threads, under ThreadSanitizer
	cmake --preset thread --log-level=WARNING
	cmake --build --preset thread
	ctest --preset thread

aarch64: $(VENV)/.build  # the C++ tests on an emulated aarch64 (needs g++-aarch64-linux-gnu and qemu-user-static)
	cmake --preset aarch64 --log-level=WARNING
	cmake --build --preset aarch64 -- --quiet
	ctest --preset aarch64

wasm32: $(VENV)/.wasm32  # the C++ library compiles where there are 32 bits, and no exceptions or threads
	cmake --preset wasm32 --log-level=WARNING
	cmake --build --preset wasm32 -- --quiet

test-kubernetes: $(VENV)/.extension $(VENV)/.dependencies  # a real API server and kube-scheduler, built once (7 CPU-minutes, Debian 12)
	$(if $(TOPOPLACE_KUBERNETES_BINARIES),,python tools/kubernetes_binaries.py build/kubernetes)
	TOPOPLACE_KUBERNETES_BINARIES=$${TOPOPLACE_KUBERNETES_BINARIES:-build/kubernetes/bin} \
		python -m pytest hosts/tests/kubernetes/test_real_cluster.py -n 0

test-slurm: $(VENV)/.extension $(VENV)/.dependencies  # the tests inside Slurm VERSION=22.05, 24.11 or 26.05 (root; debootstrap makes 400 MB once)
	python tools/slurm_roots.py build/slurm $(VERSION) python -m pytest hosts/tests/slurm -n 2

mutants: $(VENV)/.extension $(VENV)/.dependencies  # small faults, and which the tests find; MUTANTS="cpp/src/flow --count 50"
	$(PIP) --group mutants
	python tools/mutants.py $(MUTANTS)

tidy: $(VENV)/.dependencies  # clang-tidy on the C++ library
	$(PIP) --group tidy
	cmake --preset tidy --log-level=WARNING
	cmake --build --preset tidy

fuzz: $(VENV)/.dependencies  # libFuzzer on every body in cpp/fuzz (needs clang++ 16 or newer); FUZZ_SECONDS=600 for longer
	@command -v clang++ >/dev/null || { echo "make fuzz needs clang++ 16 or newer with libFuzzer; without it, make cpp-test replays the corpus" >&2; exit 1; }
	cmake --preset fuzz --log-level=WARNING
	cmake --build --preset fuzz
	for body in build/fuzz/cpp/fuzz/fuzz_*; do test ! -x $$body -o -d $$body || \
		$$body -max_total_time=$(FUZZ_SECONDS) cpp/fuzz/corpus/$$(basename $$body) || exit 1; done

fuzz-parsers: $(VENV)/.extension $(VENV)/.dependencies  # atheris on the readers of texts; FUZZ_PARSERS="system_xml hwloc_xml" for some
	$(PIP) --group fuzz
	for format in $(FUZZ_PARSERS); do python fuzz/fuzz_parsers.py $$format -max_total_time=$(FUZZ_SECONDS) || exit 1; done

bench: $(VENV)/.extension $(VENV)/.dependencies  ## kernels beside other libraries, policies at four sizes: kept for the site
	$(PIP) --group peers
	python benchmarks/page.py

bench-each: $(VENV)/.extension $(VENV)/.dependencies  # all benchmarks, one after the other, under pytest-benchmark
	python -m pytest benchmarks --benchmark-enable --benchmark-only --benchmark-columns=min,median,iqr,rounds

bars: $(VENV)/.extension $(VENV)/.dependencies  # the speeds we promise; PEERS=--peers adds other libraries
	$(if $(PEERS),$(PIP) --group peers)
	python benchmarks/check_bars.py $(PEERS)

# In the build directory of the C++ tests.
build/.wheel: $(VENV)/.extension $(VENV)/.dependencies $(PACKAGE_SOURCES) tools/check_wheel.py | $(if $(STAGES),shipped)
	rm -rf build/wheel
	python -m pip wheel --quiet --disable-pip-version-check $(BUILD) --no-deps --wheel-dir build/wheel .
	python tools/check_wheel.py build/wheel
	@touch $@

reproducible: $(VENV)/.extension  # the source distribution and the wheel, built twice: are they the same bytes?
	python tools/check_reproducible.py

newest:  # the newest release of every dependency, into constraints.txt; then `make test`
	rm -rf $(VENV)
	: >constraints.txt
	$(MAKE) $(VENV)/.extension $(VENV)/.dependencies $(VENV)/.wasm32
	$(VENV)/bin/python -m pip freeze --exclude-editable >constraints.txt

docs: $(VENV)/.extension $(VENV)/.dependencies  ## the site, in build/site; it needs no network
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict

clean:  ## remove what these commands made
	rm -rf $(VENV) build
