#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# zTensor files of repos: a caller that may not see a file can't distinguish it
# from a missing one, even after another caller has requested it.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Ztensor;

my $t = Test::Xet->new(workers => 2, Test::Xet::Token::repos());

$t->token_key();
$t->run();

my $file = zt_file([ [ 't', { shape => [ 2 ], data => 'abcdefgh' } ] ]);
my $hash = $t->upload($file->{bytes}, headers => $t->auth('write', 'a/a'))
	->{hash};
my $none = '0123456789abcdef' x 4;

my %routes = ('' => 200, '/object?i=0' => 200, '/data?i=0' => 200,
	'/reconstruction?i=0' => 200, '/verify' => 200);

# requests before and after another caller's request, and without a token

for my $round (1, 2) {
	for my $route (sort keys %routes) {
		my $r = $t->get("/api/v1/zt/$hash$route",
			$t->auth('read', 'b/b'));
		my $gone = $t->get("/api/v1/zt/$none$route",
			$t->auth('read', 'b/b'));

		is($r->code(), '404 file_not_found',
			"$round: $route: another repo");
		is($r->{body}, $gone->{body},
			"$round: $route: as a missing file");
		is($t->get("/api/v1/zt/$hash$route")->{status}, 401,
			"$round: $route: no token");
	}

	for my $route (sort keys %routes) {
		my $r = $t->get("/api/v1/zt/$hash$route",
			$t->auth('read', 'a/a'));

		is($r->{status}, 200, "$round: $route: its own repo");
		is($r->header_value('Cache-Control'), 'private, no-cache',
			"$round: not for shared caches") if $route =~ /data/;
	}

	wait_for(10, sub { $t->sql('select count(*) from xet.zt_files') });
}

$t->sql("select xet.repo_set_public('a/a', true)");

is($t->get("/api/v1/zt/$hash/data?i=0", $t->auth('read', 'b/b'))
	->{body}, 'abcdefgh', 'a public file is visible to all');

$t->done();
