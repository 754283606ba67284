#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# clang's analyzer finds nothing in src that has no explanation.

use warnings;
use strict;

use Test::More tests => 1;

use FindBin;

chdir("$FindBin::Bin/../..") or die "chdir: $!\n";

my @out = `perl .ci/analyze 2>&1`;

is($?, 0, 'analyzer') or diag(@out);
note($out[-1] // '');
