#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The test matrix of permissions, with the recipe of docs/hub.md: every route
# of the API in its two locations, and every kind of caller
# (t/rights/expect.def).

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

Test::Xet::Rights->new($t, hub => 'hub', space => 'team', headers => tls(),
	api => { '/api' => 'repo', '/cas' => 'repo' }, only => 'api')
	->run();

$t->done();
