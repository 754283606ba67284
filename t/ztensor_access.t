#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# zTensor files of repos: who may not see a file can't tell it from one that
# is not there, also when somebody else has asked for it before.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::Ztensor;

my $t = Test::Xet->new(workers => 2,
	http => 'xet_token_key %%DIR%%/token.key;', locations => <<'EOC');
location /api/ {
            xet_api;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            xet_data;
            root %%STORE%%;
        }

        location ~ ^/token/(?<scope>read|write)/(?<repo>.*)$ {
            xet_token;
            xet_token_scope $scope;
            xet_token_repo $repo;
        }
EOC

$t->write_file('token.key', 't1:' . 'ab' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');
$t->run();

sub token {
	my ($scope, $repo) = @_;

	my $token = $t->get("/token/$scope/$repo")->json()->{accessToken};

	return { Authorization => "Bearer $token" };
}

my $file = zt_file([ [ 't', { shape => [ 2 ], data => 'abcdefgh' } ] ]);
my $hash = $t->upload($file->{bytes}, headers => token('write', 'a/a'))
	->{hash};
my $none = '0123456789abcdef' x 4;

my %routes = ('' => 200, '/object?i=0' => 200, '/data?i=0' => 200,
	'/reconstruction?i=0' => 200, '/verify' => 200);

# before and after somebody else has asked, and by nobody at all

for my $round (1, 2) {
	for my $route (sort keys %routes) {
		my $r = $t->get("/api/v1/zt/$hash$route", token('read', 'b/b'));
		my $gone = $t->get("/api/v1/zt/$none$route",
			token('read', 'b/b'));

		is($r->code(), '404 file_not_found',
			"$round: $route of another");
		is($r->{body}, $gone->{body}, "$round: $route as if not there");
		is($t->get("/api/v1/zt/$hash$route")->{status}, 401,
			"$round: $route of nobody");
	}

	for my $route (sort keys %routes) {
		my $r = $t->get("/api/v1/zt/$hash$route", token('read', 'a/a'));

		is($r->{status}, 200, "$round: $route of its own");
		is($r->header_value('Cache-Control'), 'private, no-cache',
			"$round: not to be kept by others") if $route =~ /data/;
	}

	wait_for(10, sub { $t->sql('select count(*) from xet.zt_files') });
}

$t->sql("select xet.repo_set_public('a/a', true)");

is($t->get("/api/v1/zt/$hash/data?i=0", token('read', 'b/b'))->{body},
	'abcdefgh', 'a public one is for all');

$t->done();
