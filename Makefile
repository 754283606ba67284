
# Copyright (C) the ngx_http_xet_module authors

#   make            the module for the packaged nginx, build/nginx/*.so
#   make core       only the protocol core, build/libxet.a
#   make unit       unit tests of the core, with ASan and UBSan
#   make fuzz-replay  the fuzz targets over their corpora, with ASan and UBSan
#   make fuzz       the fuzz targets with libFuzzer, FUZZ_SECONDS each
#   make bench      all benchmarks, in 20 minutes, see docs/performance.md
#   make tools      t/tools/*.c, build/tools/
#   make cli        the command line client, build/xet
#   make test       installs missing packages, builds all, runs the tests of
#                   TIER: quick, full, long, nightly; "full long" by default
#   make clients    tests every real client of the registries, as a table
#   make s3-servers installs object stores for the S3 tests
#   make soak       random tenants, faults and damage against a model, for
#                   SECONDS from a SEED; SANITIZE is address, undefined,
#                   thread or empty; see t/soak/soak.pl
#   make analyze    clang's analyzer over src
#   make asan       nginx, module and client under ASan; t/*/*.t run with them
#   make check      rules of dependency and style
#   make run, stop  a separate server in DIR (./.run) at PORT (8080)
#   make install    module, configuration, SQL, client; heeds DESTDIR
#   make deb        packages for the Debian that this runs on, build/deb/*.deb
#   make dist       the sources as a tar file, build/dist/*.tar.gz; with TAG=1
#                   a release: tags the commit with the version first
#   make clean
#
# WERROR=1 turns compiler warnings into errors, with any of these targets.
#
# Everything is built under BUILD.  No target needs root except "install", and
# "test" and "run" if packages are missing.

BUILD ?=	build

CC =		cc
CLANG =		clang
CFLAGS =	-O2 -g

NGINX =		/usr/sbin/nginx
NGINX_SRC =	/usr/share/nginx/src

# configure flags for an nginx other than the packaged one, whose flags are in
# conf_flags
NGINX_FLAGS =

MODULE_CC_OPT =	-g -O2 -fPIC -fstack-protector-strong -Wformat \
		-Werror=format-security -D_FORTIFY_SOURCE=2
MODULE_LD_OPT =	-Wl,-z,relro -Wl,-z,now -fPIC

# Hardening flags for the client, which includes the core, and for the tools.
# The C library enables its checks only with optimization; dpkg-buildflags and
# other callers may set other flags.

HARDEN ?=	-fPIE -fstack-protector-strong -fstack-clash-protection \
		-Wformat -Werror=format-security \
		$(if $(findstring FORTIFY,$(CPPFLAGS) $(CFLAGS)),,\
		$(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-D_FORTIFY_SOURCE=2))
HARDEN_LD ?=	-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack

# WERROR=1 turns warnings into errors, as .ci/run does.  By default, a compiler
# newer than the sources must not break the build.

WERROR ?=

# "make test" runs the tests of TIER, one or several, or TESTS:
#
#   quick     some tests of each folder, 5 minutes at most
#   full      all tests except long and nightly ones, half an hour
#   long      files that take minutes: gigabytes, tables of clients, builds
#   nightly   tests that seldom fail: packages, images, clang's analyzer, the
#             soak, a build without zTensor

TIER =		full long

QUICK =		api/api_filters api/browser_origin api/chunk_hashes api/cors \
		api/data_filters api/data_url api/delete api/locations \
		api/possess api/read_only api/repo api/rights_typed api/route \
		api/shard_v2 api/subrequest api/telemetry api/token \
		api/token_mint api/ztensor api/ztensor_access \
		api/ztensor_conditions api/ztensor_verify \
		cli/backup_secrets cli/cli cli/hub_names cli/resume cli/tree \
		cli/verify clients/quota clients/ztensor cluster/answers_lost \
		cluster/edge_cors code/fuzz code/harness_client hub/around \
		hub/claims hub/closed hub/copies hub/given hub/hub \
		hub/mirror_hostile hub/revisions hub/rights hub/search \
		hub/standby ops/audit ops/audit_rotate ops/clock_jumped \
		ops/conf_expose ops/deploy ops/dist ops/entrypoint ops/install \
		ops/long_reads ops/pg_given_up ops/shipped ops/store_identity \
		s3/identity s3/public s3/store

LONG =		api/amplification api/pipeline api/plan_large \
		cli/hub cli/store_copy_first clients/fronts clients/hub_rows \
		cluster/copy_ids cluster/verify_body hub/bad hub/gate_recipes \
		hub/parts hub/races hub/shipped ops/descriptors \
		ops/gate_shipped ops/gc ops/jobs ops/metrics_walk ops/quickstart \
		ops/scrub

NIGHTLY =	code/analyze code/soak ops/container ops/no_ztensor ops/package

# test files that run a second time, in the same tier, with their store in a
# bucket
BUCKET =	api/batch api/cors api/dedup api/delete api/file_get \
		api/file_put api/possess api/reconstruction api/repo api/token \
		api/xorb_upload api/ztensor api/ztensor_verify clients/hub_rows \
		cluster/nodes cluster/verify_body hub/hub hub/races ops/audit

TESTS_quick =	$(QUICK:%=t/%.t)
TESTS_nightly =	$(NIGHTLY:%=t/%.t)
TESTS_long =	$(LONG:%=t/%.t) $(patsubst %,s3:t/%.t,$(filter $(LONG),$(BUCKET)))
TESTS_full =	$(filter-out $(LONG:%=t/%.t) $(TESTS_nightly),$(wildcard t/*/*.t)) \
		$(patsubst %,s3:t/%.t,$(filter-out $(LONG),$(BUCKET)))

ifneq ($(filter-out quick full long nightly,$(TIER)),)
$(error TIER is quick, full, long, nightly or several of them)
endif

TESTS =		$(foreach tier,$(TIER),$(TESTS_$(tier)))

JOBS =		2
FUZZ_SECONDS =	60

DESTDIR =
PREFIX =	/usr
CONF_DIR =	/etc/nginx/xet
DIR ?=		./.run
PORT ?=		8080

# ---------------------------------------------------------------------------

# make and configure do not support blanks in paths: see docker/paths.sh

GIVEN :=	$(BUILD)
PATHS :=	$(shell sh docker/paths.sh '$(subst ','\'',$(GIVEN))')
ROOT :=		$(word 1,$(PATHS))
OUT :=		$(word 2,$(PATHS))

override BUILD := $(word 3,$(PATHS))

ifneq ($(words $(PATHS)),3)
$(error docker/paths.sh failed)
endif

MODULE :=	$(OUT)/nginx/ngx_http_xet_module.so

export XET_BUILD := $(OUT)
export NGINX_SRC

# Only the module is built by nginx's Makefile, which needs none of these lists.

ifneq ($(MAKECMDGOALS),build-module)

# BLAKE3: the library if it is installed, else the sources in a Debian 12
# package

ifeq ($(XET_BLAKE3_DIR)$(shell pkg-config --exists libblake3 2>/dev/null || \
    echo none),)
BLAKE3_LIBS :=	$(shell pkg-config --libs libblake3)
BLAKE3_INCS :=	$(shell pkg-config --cflags libblake3)
BLAKE3_OBJS :=
else
BLAKE3_DIR :=	$(firstword $(XET_BLAKE3_DIR) \
		$(wildcard /usr/share/cargo/registry/blake3-*/c))
BLAKE3_LIBS :=
BLAKE3_INCS :=	-isystem $(BLAKE3_DIR)
BLAKE3_OBJS :=	blake3 blake3_dispatch blake3_portable
MACHINE :=	$(shell uname -m)
ifneq ($(filter x86_64 amd64,$(MACHINE)),)
BLAKE3_OBJS +=	$(patsubst %,blake3_%_x86-64_unix,sse2 sse41 avx2 avx512)
else ifneq ($(filter aarch64 arm64,$(MACHINE)),)
BLAKE3_OBJS +=	blake3_neon
endif
endif

# folders, and sources in them

FOUND :=	$(sort $(shell find src/core src/ztensor/core src/store \
		-type d -o -name '*.c'))
FOUND_CORE :=	$(filter src/core src/core/% src/ztensor/%,$(FOUND))
FOUND_STORE :=	$(filter src/store src/store/%,$(FOUND))

CORE_DIRS :=	$(filter-out %.c,$(FOUND_CORE))
CORE_SRCS :=	$(filter %.c,$(FOUND_CORE))
STORE_DIRS :=	$(filter-out %.c,$(FOUND_STORE))
STORE_SRCS :=	$(filter %.c,$(FOUND_STORE))

UNIT_SRCS :=	$(sort $(wildcard t/unit/*/test_*.c))
FUZZ_SRCS :=	$(sort $(wildcard t/fuzz/fuzz_*.c))
MAIN_SRCS :=	$(sort $(shell grep -lw '^main' t/bench/bench_*.c t/tools/*.c \
		2>/dev/null))
BENCH_SRCS :=	$(filter t/bench/%,$(MAIN_SRCS))
TOOL_SRCS :=	$(filter t/tools/%,$(MAIN_SRCS))
CLI_SRCS :=	$(sort $(wildcard src/cli/*/*.c src/ztensor/cli/*.c))
CLI_INCS :=	$(sort $(dir $(CLI_SRCS:%=-I%))) \
		$(shell pkg-config --cflags libpq 2>/dev/null)

endif

CORE_INCS :=	$(addprefix -I,$(CORE_DIRS)) $(BLAKE3_INCS)
CORE_LIBS :=	$(BLAKE3_LIBS) -llz4 -lcrypto -lzstd -lxxhash -lisal \
		-ljansson -lexpat -lyaml

UNIT_BINS :=	$(UNIT_SRCS:t/unit/%.c=$(BUILD)/unit/%)
REPLAY_BINS :=	$(FUZZ_SRCS:t/fuzz/%.c=$(BUILD)/fuzz-replay/%)
FUZZ_BINS :=	$(FUZZ_SRCS:t/fuzz/%.c=$(BUILD)/fuzz/%)
BENCH_BINS :=	$(BENCH_SRCS:t/bench/%.c=$(BUILD)/bench/%)
TOOL_BINS :=	$(TOOL_SRCS:t/tools/%.c=$(BUILD)/tools/%)
STORE_OBJS :=	$(STORE_SRCS:%.c=$(BUILD)/host/%.o)
CLI_BIN :=	$(if $(CLI_SRCS),$(BUILD)/xet)
SQL :=		$(BUILD)/sql/functions.sql

WARN =		-W -Wall -Wextra -Wpointer-arith -Wno-unused-parameter \
		$(if $(WERROR),-Werror)
CORE_WARN =	$(WARN) -Wshadow -Wconversion -Wno-sign-conversion
CHECKED =	-fsanitize=address,undefined -fno-sanitize-recover=all \
		-fno-omit-frame-pointer

# Programs around the core may use POSIX; the core itself is plain C99.

HOST_CFLAGS =	-std=c99 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(WARN) \
		$(CORE_INCS) $(STORE_DIRS:%=-I%) -It/unit -It/tools
CLI_LIBS =	-lcurl -ljansson -lpq

# V=1 shows the commands

Q =		$(if $(V),,@)
QUIET =		--no-print-directory $(if $(V),,-s)

# DEP lists the headers of a target, under both forms of its path, since BUILD
# may be an absolute path.  DEP_DONE makes the list visible when it is complete:
# another make may be reading it, and a compiler may be killed.

DEP =		-MMD -MP -MF $(@D)/.$(@F).d.new \
		-MT $(@:$(BUILD)/%=$(OUT)/%) \
		-MT $(patsubst $(ROOT)/%,%,$(@:$(BUILD)/%=$(OUT)/%))
DEP_DONE =	mv $(@D)/.$(@F).d.new $(@D)/.$(@F).d


.PHONY: build build-module core unit fuzz-replay fuzz fuzz-bins bench \
	bench-bins tools cli
.PHONY: test test-all clients s3-servers asan soak analyze check run stop \
	install deb dist clean FORCE
.DELETE_ON_ERROR:

# One build at a time: nginx's configure runs its tests in the build folder.

build:
	@mkdir -p $(OUT)
	@+flock $(OUT)/.build.lock $(MAKE) $(QUIET) build-module

# nginx's Makefile has its own flags: a CFLAGS of our command line would
# override them, including those for building a module.

build-module: MAKEOVERRIDES =
build-module: $(OUT)/nginx/.configured
	@echo "  module $(BUILD)/nginx/ngx_http_xet_module.so"
	@+$(MAKE) $(QUIET) -f $(OUT)/nginx/Makefile -C $(NGINX_SRC) modules

core: $(BUILD)/libxet.a

unit: $(UNIT_BINS)

fuzz-replay: $(REPLAY_BINS)

fuzz-bins: $(FUZZ_BINS)

bench-bins: $(BENCH_BINS)

tools: $(TOOL_BINS) $(BUILD)/tools/.rights

# Each route must have expectations of who may access it.

$(BUILD)/tools/.rights: $(BUILD)/tools/xet_tables t/rights/expect.def \
		.ci/check-rights t/lib/Test/Xet/Rights/Table.pm
	$(Q)perl .ci/check-rights $(BUILD)/tools/xet_tables && touch $@

cli: $(CLI_BIN) $(SQL)

# The folder for "xet migrate": its rules and the migrations unchanged, and all
# functions in one file.  The folder is a prerequisite, too, since the removal
# of a file changes it.

SQL_AS_IS =	sql/migrate.sql $(sort $(wildcard sql/[0-9]*.sql))

$(SQL): sql $(sort $(wildcard sql/*.sql))
	$(Q)mkdir -p $(@D) && rm -f $(@D)/*
	$(Q)cp $(SQL_AS_IS) $(@D)/
	$(Q)cat $(filter-out sql $(SQL_AS_IS),$^) > $@


# The core and BLAKE3 are compiled in three variants: plain, with sanitizers
# for the tests, and with clang's coverage for the fuzzers.

# $(1) folder, $(2) compiler, $(3) flags, $(4) archive

define core_variant

$(1)_OBJS :=	$$(CORE_SRCS:%.c=$(1)/%.o) $$(BLAKE3_OBJS:%=$(1)/blake3/%.o)

$$(CORE_SRCS:%.c=$(1)/%.o): $(1)/%.o: %.c Makefile
	@mkdir -p $$(@D)
	@echo "  cc  $$<"
	$$(Q)$(2) -std=c99 $(3) $$(CORE_WARN) -fPIC -fvisibility=hidden \
		$$(CORE_INCS) $$(DEP) -c -o $$@ $$< && $$(DEP_DONE)

$(1)/blake3/%.o: $$(BLAKE3_DIR)/%.c Makefile
	@mkdir -p $$(@D)
	@echo "  cc  $$<"
	$$(Q)$(2) $(3) -fPIC -fvisibility=hidden -c -o $$@ $$<

$(1)/blake3/%.o: $$(BLAKE3_DIR)/%.S Makefile
	@mkdir -p $$(@D)
	@echo "  cc  $$<"
	$$(Q)$(2) -fPIC -c -o $$@ $$<

$(4): $$($(1)_OBJS)
	$$(Q)rm -f $$@
	@echo "  ar  $$@"
	$$(Q)$$(AR) rcs $$@ $$^

endef

ASAN_CFLAGS =	-O1 -g $(CHECKED)
FUZZ_CFLAGS =	-O1 -g $(CHECKED) -fsanitize=fuzzer-no-link

$(eval $(call core_variant,$(BUILD)/obj,$$(CC),\
$$(HARDEN) $$(CPPFLAGS) $$(CFLAGS),$(BUILD)/libxet.a))
$(eval $(call core_variant,$(BUILD)/asan,$$(CC),$$(ASAN_CFLAGS),\
$(BUILD)/asan/libxet.a))
$(eval $(call core_variant,$(BUILD)/fuzz/obj,$$(CLANG),$$(FUZZ_CFLAGS),\
$(BUILD)/fuzz/obj/libxet.a))


# A source that needs more libraries than the core names them in a line "libs:
# -l..."

own_libs = $$(sed -n 's!^/[*] libs: \(.*\) [*]/$$!\1!p' $<)

$(BUILD)/unit/%: t/unit/%.c $(BUILD)/asan/libxet.a Makefile
	@mkdir -p $(@D)
	@echo "  cc  $<"
	$(Q)$(CC) $(ASAN_CFLAGS) $(HOST_CFLAGS) $(DEP) -o $@ $< \
		$(BUILD)/asan/libxet.a $(CORE_LIBS) $(own_libs) -lpthread \
		&& $(DEP_DONE)

# Tests of src/store link its sources, too.

$(BUILD)/unit/store/%: t/unit/store/%.c $(STORE_SRCS) \
		$(wildcard src/store/*.h src/store/*/*.h) \
		$(BUILD)/asan/libxet.a Makefile
	@mkdir -p $(@D)
	@echo "  cc  $<"
	$(Q)$(CC) $(ASAN_CFLAGS) $(HOST_CFLAGS) -o $@ $< $(STORE_SRCS) \
		$(BUILD)/asan/libxet.a $(CORE_LIBS) -lcurl -lpthread

$(BUILD)/asan/replay.o: t/fuzz/replay.c Makefile
	@mkdir -p $(@D)
	@echo "  cc  $<"
	$(Q)$(CC) $(ASAN_CFLAGS) $(HOST_CFLAGS) -c -o $@ $<

$(BUILD)/fuzz-replay/%: t/fuzz/%.c $(BUILD)/asan/replay.o \
		$(BUILD)/asan/libxet.a Makefile
	@mkdir -p $(@D)
	@echo "  cc  $<"
	$(Q)$(CC) $(ASAN_CFLAGS) $(HOST_CFLAGS) $(DEP) -o $@ $< \
		$(BUILD)/asan/replay.o $(BUILD)/asan/libxet.a $(CORE_LIBS) \
		$(own_libs) && $(DEP_DONE)

$(BUILD)/fuzz/%: t/fuzz/%.c $(BUILD)/fuzz/obj/libxet.a Makefile
	@mkdir -p $(@D)
	@echo "  cc  $<"
	$(Q)$(CLANG) -O1 -g $(CHECKED) -fsanitize=fuzzer $(HOST_CFLAGS) \
		$(DEP) -o $@ $< $(BUILD)/fuzz/obj/libxet.a $(CORE_LIBS) \
		$(own_libs) && $(DEP_DONE)

# A benchmark or tool NAME.c may have further parts, NAME_*.c.

.SECONDEXPANSION:

host_objs = $(addprefix $(BUILD)/host/,$(addsuffix .o,$(basename $(1).c \
		$(filter-out $(BENCH_SRCS) $(TOOL_SRCS),$(wildcard $(1)_*.c)))))

$(BUILD)/host/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  cc  $<"
	$(Q)$(CC) $(HARDEN) $(CPPFLAGS) $(CFLAGS) $(HOST_CFLAGS) $(DEP) \
		-c -o $@ $< && $(DEP_DONE)

$(BENCH_BINS): $(BUILD)/bench/%: $$(call host_objs,t/bench/$$*) \
		$(BUILD)/libxet.a
	@mkdir -p $(@D)
	@echo "  ld  $@"
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(CORE_LIBS) \
		-lpthread -lm

$(TOOL_BINS): $(BUILD)/tools/%: $$(call host_objs,t/tools/$$*) \
		$(BUILD)/libxet.a
	@mkdir -p $(@D)
	@echo "  ld  $@"
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(CORE_LIBS) \
		-lpthread -lm

# The S3 client uses the core, so libxet.a appears a second time on the link
# line.

$(BUILD)/tools/xet_s3: CORE_LIBS := $(BUILD)/libxet.a $(CORE_LIBS) -lcurl
$(BUILD)/tools/xet_s3: $(STORE_OBJS)

$(CLI_SRCS:%.c=$(BUILD)/host/%.o): HOST_CFLAGS += $(CLI_INCS)

$(BUILD)/xet: $(CLI_SRCS:%.c=$(BUILD)/host/%.o) $(STORE_OBJS) $(BUILD)/libxet.a
	@echo "  ld  $@"
	$(Q)$(CC) $(CFLAGS) $(HARDEN_LD) $(LDFLAGS) -o $@ $^ $(CORE_LIBS) \
		$(CLI_LIBS) -lpthread

$(CLI_SRCS:%.c=$(BUILD)/asan/%.o) $(STORE_SRCS:%.c=$(BUILD)/asan/%.o): \
		$(BUILD)/asan/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  cc  $<"
	$(Q)$(CC) $(ASAN_CFLAGS) $(HOST_CFLAGS) $(CLI_INCS) $(DEP) \
		-c -o $@ $< && $(DEP_DONE)

$(BUILD)/asan/xet: $(CLI_SRCS:%.c=$(BUILD)/asan/%.o) \
		$(STORE_SRCS:%.c=$(BUILD)/asan/%.o) $(BUILD)/asan/libxet.a
	@echo "  ld  $@"
	$(Q)$(CC) $(ASAN_CFLAGS) -o $@ $^ $(CORE_LIBS) $(CLI_LIBS) -lpthread


# New inputs that libFuzzer finds stay under BUILD.  To keep an input, copy it
# to t/fuzz/corpus by hand.

fuzz: $(FUZZ_BINS)
	@for bin in $(FUZZ_BINS); do \
		noun=$${bin##*/fuzz_}; \
		work=$(BUILD)/fuzz/run/$$noun; \
		mkdir -p $$work/corpus; \
		seed=t/fuzz/corpus/$$noun; \
		[ -d $$seed ] || seed=; \
		echo "fuzz_$$noun: $(FUZZ_SECONDS) s"; \
		$$bin -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
			-artifact_prefix=$$work/ $$work/corpus $$seed \
			> $$work/log 2>&1 \
			|| { tail -n 40 $$work/log; exit 1; }; \
		grep -E 'stat::(number_of_exec|average_exec)' $$work/log; \
	done

# PROGRAMS='upload.pl hub.pl' runs only these.

bench: build tools cli $(BENCH_BINS)
	perl t/bench/all.pl $(PROGRAMS)


# Builds the module for the packaged nginx, outside of its tree.  nginx is
# configured again only when "config", the flags or nginx itself have changed;
# after that nginx's own Makefile determines what to compile.

# nginx itself sets -Werror; a later option overrides it.

NO_WERROR =	$(if $(WERROR),,-Wno-error)

# $(1) folder to build in, $(2) sources, $(3) flags for configure

nginx_configure = \
	@mkdir -p $(1) && \
	cd $(2) && \
	ASAN_OPTIONS=detect_leaks=0 bash -c ' \
		NGX_CONF_FLAGS=($(NGINX_FLAGS)); \
		[ "$(NGINX_FLAGS)" ] || [ ! -f conf_flags ] \
			|| . ./conf_flags; \
		./configure $(3) --builddir=$(1)' > $(1)/configure.log 2>&1 \
	|| { tail -n 12 $(1)/configure.log; exit 1; } && \
	touch $(1)/.configured

# "config" converts pages to C.

PAGES =		$(wildcard src/http/monitor/*.html src/http/hub/*.css)

$(OUT)/nginx/.configured: config $(OUT)/nginx/.flags $(OUT)/.sources \
		$(PAGES) \
		$(NGINX_SRC)/src/core/nginx.h
	@echo "configuring $(NGINX_SRC), see $(BUILD)/nginx/configure.log"
	$(call nginx_configure,$(OUT)/nginx,$(NGINX_SRC),"$${NGX_CONF_FLAGS[@]}" \
		--with-cc-opt="$(MODULE_CC_OPT) $(NO_WERROR)" \
		--with-ld-opt="$(MODULE_LD_OPT)" \
		--add-dynamic-module=$(ROOT))

$(OUT)/nginx/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(NGINX_SRC) $(NGINX_FLAGS) $(MODULE_CC_OPT) $(MODULE_LD_OPT)' \
		'$(NO_WERROR)' \
		'$(XET_BLAKE3_DIR) $(XET_ZTENSOR)' '$(ROOT)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The names of all sources: if they change, nginx is configured again, since
# "config" lists them.  "make test" can run this rule in two makes at the same
# time, so each make first writes a temporary file of its own.

$(OUT)/.sources: FORCE
	@mkdir -p $(@D)
	@new=$@.$$$$; find src -name '*.[ch]' | sort > $$new && \
	{ cmp -s $$new $@ && rm $$new || mv $$new $@; }

$(NGINX_SRC)/src/core/nginx.h:
	@echo "no nginx sources at $(NGINX_SRC): run sh docker/setup.sh" >&2
	@exit 1


# Builds a complete nginx with the module linked in, and with a sanitizer:
# nginx-address, nginx-undefined, nginx-thread.  NGX_DEBUG_PALLOC turns every
# allocation from a pool into one that ASan sees.  nginx-dev has no C sources,
# so they are downloaded, unless NGINX_SRC has them.

ifneq ($(wildcard $(NGINX_SRC)/src/core/nginx.c),)
FULL_SRC :=	$(NGINX_SRC)
else
FULL_SRC :=	$(OUT)/nginx-src
endif

FULL_NGINX_FLAGS = --with-debug --with-threads --with-http_ssl_module \
	--with-http_v2_module --with-http_slice_module \
	--with-http_auth_request_module --with-http_realip_module \
	--with-http_stub_status_module --with-http_dav_module \
	--with-http_secure_link_module --with-http_sub_module \
	--with-http_addition_module

SANITIZERS =	address undefined thread
SANITIZER_CC_address = -DNGX_DEBUG_PALLOC=1
SANITIZER_CC_undefined =
SANITIZER_CC_thread =

.PHONY: $(SANITIZERS:%=nginx-%)

$(SANITIZERS:%=nginx-%): MAKEOVERRIDES =
$(SANITIZERS:%=nginx-%): nginx-%: $(OUT)/nginx-%/.configured
	@echo "  nginx  $(BUILD)/$@/nginx"
	@+ASAN_OPTIONS=detect_leaks=0 $(MAKE) $(QUIET) \
		-f $(OUT)/$@/Makefile -C $(FULL_SRC) binary

$(SANITIZERS:%=$(OUT)/nginx-%/.configured): $(OUT)/nginx-%/.configured: \
		config Makefile $(OUT)/.sources $(PAGES) $(FULL_SRC)/src/core/nginx.c
	@echo "configuring $(FULL_SRC), see $(BUILD)/nginx-$*/configure.log"
	$(call nginx_configure,$(OUT)/nginx-$*,$(FULL_SRC),\
		$(FULL_NGINX_FLAGS) \
		--with-cc-opt="-O1 -g -fsanitize=$* -fno-omit-frame-pointer \
		$(SANITIZER_CC_$*) $(NO_WERROR)" \
		--with-ld-opt=-fsanitize=$* --add-module=$(ROOT))

$(OUT)/nginx-src/src/core/nginx.c:
	sh docker/nginx-source.sh $(OUT)/nginx-src

asan: nginx-address tools $(BUILD)/asan/xet
	XET_TEST_NGINX=$(OUT)/nginx-address/nginx XET_TEST_MODULE= \
	XET_TEST_CLI=$(OUT)/asan/xet \
	ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 \
	perl .ci/prove -j $(JOBS) $(filter-out t/code/unit.t t/code/fuzz.t \
		s3:%,$(TESTS))


# Variables on the command line of make are in the environment: SECONDS, SEED,
# STEPS, ONLY, MODE, WITHOUT, VERBOSE, SHRINK.

SANITIZE =	address

soak: $(if $(SANITIZE),nginx-$(SANITIZE),build) tools cli
	$(if $(SANITIZE),XET_TEST_NGINX=$(OUT)/nginx-$(SANITIZE)/nginx \
		XET_TEST_MODULE=) \
	perl t/soak/soak.pl


# Newly installed packages change what the checks above find, so make runs a
# second time.

test:
	sh docker/setup.sh test
	+$(MAKE) --no-print-directory test-all

# The real clients are installed once from their registries, in BUILD.

test-all: build unit fuzz-replay tools cli bench-bins check nginx-address
	sh t/clients/setup.sh $(OUT)
	XET_TEST_NGINX="$${XET_TEST_NGINX:-$(NGINX)}" \
	XET_TEST_MODULE="$${XET_TEST_MODULE-$(MODULE)}" \
	perl .ci/prove -j $(JOBS) $(TESTS)

# ROWS='hf_xet @huggingface' selects the rows to run; by default all rows run.

clients: build tools cli
	sh t/clients/setup.sh $(OUT) all
	XET_TEST_NGINX="$${XET_TEST_NGINX:-$(NGINX)}" \
	XET_TEST_MODULE="$${XET_TEST_MODULE-$(MODULE)}" \
	perl t/clients/matrix.pl $(ROWS)
	XET_TEST_NGINX="$${XET_TEST_NGINX:-$(NGINX)}" \
	XET_TEST_MODULE="$${XET_TEST_MODULE-$(MODULE)}" \
	perl t/clients/hub_matrix.pl $(ROWS)

# STORES='garage radosgw' selects the stores to install; the default is all.

s3-servers:
	sh t/clients/s3_setup.sh $(OUT) $(STORES)

analyze: build
	perl .ci/analyze

check: core build $(BUILD)/tools/.rights
	sh .ci/check-deps
	perl .ci/check-style

run:
	@DIR='$(DIR)' PORT='$(PORT)' BUILD='$(OUT)' sh docker/run.sh

stop:
	@DIR='$(DIR)' sh docker/stop.sh


# The packaged nginx reports its modules path.  conf/nginx.conf is a complete
# example and must not replace a file of the same name.  The files in CONF_DIR
# belong to the operator: a file that differs from the installed version is not
# overwritten; SHARE has a copy of that version.  SQL files of other versions
# are removed; otherwise the folder would mix versions.

SHARE =		$(DESTDIR)$(PREFIX)/share/xet

install: build cli $(SQL)
	modules=$$($(NGINX) -V 2>&1 | tr ' ' '\n' \
		| sed -n 's/^--modules-path=//p'); \
	install -d "$(DESTDIR)$${modules:?}" && \
	install -m 644 $(MODULE) "$(DESTDIR)$$modules/"
	install -d "$(DESTDIR)$(CONF_DIR)" "$(DESTDIR)$(PREFIX)/bin" \
		"$(SHARE)/conf" "$(SHARE)/sql" \
		"$(DESTDIR)$(PREFIX)/share/man/man1"
	@for file in $(filter-out nginx.conf,$(notdir $(wildcard conf/*.conf))); do \
		to="$(DESTDIR)$(CONF_DIR)/$$file"; \
		if [ -e "$$to" ] && ! cmp -s conf/$$file "$$to" \
			&& ! cmp -s "$(SHARE)/conf/$$file" "$$to"; \
		then \
			echo "$$to was changed and stays," \
				"the new one is $$to.dist"; \
			to="$$to.dist"; \
		else \
			rm -f "$$to.dist"; \
		fi; \
		install -m 644 conf/$$file "$$to" || exit 1; \
	done
	install -m 644 $(wildcard conf/*) "$(SHARE)/conf/"
	sh docker/web.sh "$(SHARE)/web"
	rm -f "$(SHARE)"/sql/*
	install -m 644 $(dir $(SQL))* "$(SHARE)/sql/"
	$(if $(CLI_BIN),install -m 755 $(CLI_BIN) "$(DESTDIR)$(PREFIX)/bin/")
	install -m 644 docs/xet.1 "$(DESTDIR)$(PREFIX)/share/man/man1/"

# Builds in a copy of the tree, with the flags of packages.

deb:
	@OUT='$(OUT)/deb' sh docker/package.sh

dist:
	@OUT='$(OUT)/dist' sh docker/package.sh dist

clean:
	rm -rf '$(subst ','\'',$(GIVEN))'


# The module's objects have their own lists, in nginx's Makefile.

ifneq ($(MAKECMDGOALS),build-module)
-include $(shell test -d $(BUILD) && find $(BUILD)/ -name '.*.d')
endif
