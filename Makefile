# make demo      set up .venv and run the mHC expand kernels on the simulator
# make test      set up .venv and run the test suite
# make test-all  the same with every variant of every kernel: much longer, most of it TileLang's own lowering
# make lint      ruff, mypy and clang-format
#
# PYTHON=... chooses the interpreter, PIP_ARGS=... is handed to every pip install, TEST_ARGS=... to pytest.

PYTHON ?= python3
PIP_ARGS ?=
TEST_ARGS ?=
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --no-input -c constraints.txt $(PIP_ARGS)
NATIVE := $(shell find csrc -name '*.cc' -o -name '*.h' 2>/dev/null)
LOG := build/setup.log

# One readable line when something the set-up needs is missing; the log has the rest.
fail = { echo "tilelang-pto: $(1)" >&2; exit 1; }
pip_failed = { echo "tilelang-pto: $(1); is the package index reachable? (full log: $(LOG))" >&2; exit 1; }

.PHONY: all demo test test-all lint install clean

all: install

demo: $(VENV)/.installed
	@echo "tilelang-pto: compiling the mHC expand kernels and running them on the simulator"
	@$(BIN)/tilelang-pto demo

test: $(VENV)/.tested
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TEST_ARGS)

test-all: $(VENV)/.tested
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "" $(TEST_ARGS)

lint: $(VENV)/.tested
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/clang-format --dry-run --Werror $(NATIVE)

install: $(VENV)/.installed

$(VENV)/.created: constraints.txt
	@mkdir -p build
	@echo "tilelang-pto: first set-up, several minutes: downloads TileLang and torch into $(VENV), then builds the native library"
	@command -v $(PYTHON) >/dev/null 2>&1 || $(call fail,$(PYTHON) not found; install Python 3.10 or newer or name one with PYTHON=...)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || $(call fail,$(PYTHON) is $$($(PYTHON) --version 2>&1)$(,) Python 3.10 or newer is needed (PYTHON=... names another))
	@command -v $${CXX:-c++} >/dev/null 2>&1 || $(call fail,no C++ compiler found; install g++ or clang++ (CXX=... names one))
	@echo 'int main() { return __cplusplus >= 201703L ? 0 : 1; }' > build/probe.cc && $${CXX:-c++} -std=c++17 build/probe.cc -o build/probe 2>$(LOG) || $(call fail,the C++ compiler $${CXX:-c++} cannot build a C++17 program (full log: $(LOG)))
	@echo "tilelang-pto: step 1 of 3: creating $(VENV)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV) >$(LOG) 2>&1 || $(call fail,$(PYTHON) -m venv failed; install the venv module of Python (full log: $(LOG)))
	@echo "tilelang-pto: step 2 of 3: downloading and installing TileLang, torch and the build tools (log: $(LOG))"
	@$(INSTALL) setuptools cmake ninja apache-tvm-ffi tilelang torch numpy jinja2 click filelock rich >$(LOG) 2>&1 || $(call pip_failed,pip could not install the dependencies)
	@touch $@

# Editable: Python files are used where they are, so this runs again only when the build or the native code has changed.
$(VENV)/.installed: $(VENV)/.created pyproject.toml setup.py CMakeLists.txt $(NATIVE)
	@echo "tilelang-pto: step 3 of 3: compiling the native library and installing tilelang-pto (log: $(LOG))"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(INSTALL) --no-build-isolation --no-deps -e . >$(LOG) 2>&1 || { tail -n 20 $(LOG) >&2; $(call fail,building the package failed (full log: $(LOG))); }
	@touch $@

# tile_kernels asks for Python 3.12; its Ascend kernels work with older ones.
$(VENV)/.tested: $(VENV)/.installed
	@echo "tilelang-pto: downloading and installing the test tools (log: $(LOG))"
	@$(INSTALL) pytest pytest-xdist hypothesis ml_dtypes ruff mypy clang-format matplotlib playwright tree-sitter tree-sitter-cpp >$(LOG) 2>&1 || $(call pip_failed,pip could not install the test tools)
	@$(INSTALL) --no-deps --ignore-requires-python tile-kernels==2.1.0 >$(LOG) 2>&1 || $(call pip_failed,pip could not install tile-kernels)
	@touch $@

clean:
	rm -rf $(VENV) build tilelang_pto/*.so *.egg-info

, := ,
