#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The permission test (t/rights/expect.def) with the recipe of docs/hub.md, the
# Hub of a team: every route, and every kind of caller.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Rights;
use Test::Xet::Rights::Conf;

my $t = Test::Xet->new(workers => 1, log => 'info');

prepare($t);
$t->write_conf(recipe($t, 'docs/hub.md', 'recipe: hub'));
$t->run();

Test::Xet::Rights->new($t, hub => 'hub', space => 'team', headers => tls())
	->run();

$t->done();
