# make demo and make test set up everything they need in .venv; nothing else has to be installed
# but Python >= 3.11, a C++20 compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP_SOURCES := $(shell find cpp -name '*.[ch]pp') CMakeLists.txt

.PHONY: demo test lint cpp-test bench clean
demo: $(VENV)/.extension
	$(BIN)/topoplace machines

test: lint cpp-test $(VENV)/.extension
	$(BIN)/python -m pytest

$(VENV)/.dependencies: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev numpy rich matplotlib networkx pandas
	touch $@

$(VENV)/.extension: $(VENV)/.dependencies $(CPP_SOURCES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e .
	touch $@

cpp-test: $(VENV)/.dependencies
	$(BIN)/cmake -S . -B build/cpp -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DTOPOPLACE_TESTS=ON -DCMAKE_BUILD_TYPE=Release
	$(BIN)/cmake --build build/cpp
	$(BIN)/ctest --test-dir build/cpp --output-on-failure

lint: $(VENV)/.dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf $(VENV) build
