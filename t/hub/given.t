#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A token that a Hub has issued to an anonymous caller, in a configuration that
# gives name spaces to all callers with a token.  The token gives no access by
# name to a repo that became private.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Token;

my $t = Test::Xet->new(http => Test::Xet::Token::token_directive(),
	locations => <<'EOC' . Test::Xet::Token::token_location());
location / {
            xet_hub on;
            xet_auth token;
            xet_hub_public on;
            xet_hub_owners team;
        }
EOC

$t->token_key();
$t->run();
$t->allow(qr/xet: 404 /);

my $robin = $t->auth('admin', '@robin');
my $info = '/api/models/team/open';
my $more = "$info/xet-read-token/main";

is($t->post('/api/repos/create', \'{"name":"open","organization":"team"}',
	$robin)->{status}, 200, 'a public repo of all who have a token');

my $given = { Authorization => 'Bearer '
	. $t->get($more)->json()->{accessToken} };

is($t->get($info, $given)->{status}, 200, 'what nobody was given opens it');
is($t->http('PUT', "$info/settings", $robin, \'{"private":true}')->{status},
	200, 'it becomes private');
is($t->get($info, $robin)->{status}, 200, 'and is there for the team');
is($t->get($_, $given)->{status}, 404, "what nobody was given: $_")
	for $info, "$info/tree/main", $more, '/team/open';
unlike($t->get('/api/models', $given)->{body}, qr/team/, 'nor is it in a list');

$t->done();
