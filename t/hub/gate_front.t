#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The permission test (t/rights/expect.def) with conf/edge.conf in front of a
# Hub, and with a Hub that is a mirror of another one.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;
use Test::Xet::Rights;
use Test::Xet::Rights::Conf;
use Test::Xet::Table;

my %api = (api => { '/api' => 'repo', '/cas' => 'repo' }, brief => 1);

subtest('an edge', sub {
	my $t = server();
	my $edge = Test::Xet::Edge::edge($t);

	$t->write_conf(setup($t));
	$t->run();
	$edge->run();

	Test::Xet::Rights->new($t, hub => 'closed', through => [ $edge ],
		%api)->run();

	$edge->check();
	$t->done();
});

SKIP: {
	skip('nginx without sub', 1)
		if Test::Xet::Nginx::version() !~ /--with-http_sub_module/;

	subtest('a mirror', \&mirror);
}

done_testing();

# The other Hub is empty: a local repo without access and a missing one look
# alike through the mirror as well.

sub mirror {
	my $t = server();

	Test::Xet::Table::mirror($t, 'http://127.0.0.1:' . $t->port(8085),
		'1s');
	$t->write_conf(recipe($t, 'docs/hub.md', 'recipe: hub', http => <<'EOC')
resolver 127.0.0.1:%%PORT_8083%%;
include %%DIR%%/xet_hub_mirror.conf;

server {
    listen 127.0.0.1:%%PORT_8085%%;

    location / {
        return 404 '{"error":"Repository not found"}';
        default_type application/json;
        add_header X-Error-Code RepoNotFound;
    }
}
EOC
		=~ s!(include \S+/)xet_hub\.conf;!$&
    ${1}xet_hub_upstream.conf;!r);
	$t->run();

	Test::Xet::Rights->new($t, hub => 'hub', space => 'team',
		headers => tls(), %api)->run();

	$t->done();
}

sub server {
	my $t = Test::Xet->new(workers => 1, log => 'info');

	prepare($t);

	return $t;
}
