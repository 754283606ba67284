#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The permission test (t/rights/expect.def) with the recipes of docs/access.md,
# docs/howto/tls.md and docs/directives.md: just tokens, another service that
# decides, a front end that authenticates users, and callers that own all name
# spaces.  In one more recipe the server has only the public half of the token
# key, with an issuer and an audience.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ run_command /;
use Test::Xet::Rights;
use Test::Xet::Rights::Conf;

my %api = (api => { '/api' => 'plain' }, cas => '/api');
my $access = 'docs/access.md';
my $directives = 'docs/directives.md';

gate('tokens', sub { recipe($_[0], $access, 'recipe: tokens') }, %api);
gate('tokens over TLS', sub { recipe($_[0], 'docs/howto/tls.md',
	'recipe: tokens') }, %api, headers => tls());
gate('auth_request', sub { recipe($_[0], $access,
	'recipe: auth_request', http => check(<<'EOC')) },
if ($http_authorization = "Bearer liked") {
            return 204;
        }

        return 401;
EOC
	api => { '/api' => 'asked' }, cas => '/api',
	makes => { Authorization => 'Bearer liked' });
gate('xet_hub', sub { recipe($_[0], $directives, qr/^### xet_hub\n/m) },
	hub => 'hub', api => { '/cas' => 'repo' });
gate('xet_hub_user', sub { recipe($_[0], $directives,
	qr/^### xet_hub_user\n/m, http => check('return 204;')) },
	hub => 'named', names => 1);
gate('xet_hub_owners', sub { owners($_[0]) }, hub => 'root',
	headers => tls());
gate('xet_hub_expose', sub { recipe($_[0], $directives,
	qr/^### xet_hub_expose\n/m) =~ s/192\.0\.2\.7/127.0.0.1/r },
	hub => 'closed', only => 'api', api => { '/peer/api' => 'store',
	'/api' => 'repo' });
gate('public keys', \&public_keys, %api, public => 'ed.key',
	iss => 'https://issuer.example', aud => 'cas');

my %everybody = (hub => 'off', owner => 'me', space => 'me');
my %team = (hub => 'hub', space => 'team', headers => tls());

gate('readers only', sub { beside($_[0], recipe($_[0], $access,
	qr/^## Readers only\n/m)) }, %everybody, maker => 8086,
	hub => 'off.read', api => { '/api' => 'store.read',
		'/cas' => 'repo.read' });
gate('no deletes', sub { beside($_[0], recipe($_[0], $access,
	qr/^## Deletes\n/m)) }, %everybody, maker => 8086,
	hub => 'off.keep', api => { '/api' => 'store.keep',
		'/cas' => 'repo.keep' });
gate('readers only, with tokens', sub { beside($_[0], recipe($_[0],
	'docs/hub.md', 'recipe: hub') =~ s/xet_auth token;/$&
	xet_read_only on;/r) }, %team, maker => 8086,
	hub => 'hub.read', api => { '/api' => 'plain.read',
		'/cas' => 'plain.read' });
gate('no deletes, with tokens', sub { beside($_[0], recipe($_[0],
	'docs/hub.md', 'recipe: hub') =~ s/xet_auth token;/$&
	xet_delete off;/r) }, %team, maker => 8086,
	hub => 'hub.keep', api => { '/api' => 'plain.keep',
		'/cas' => 'plain.keep' });

done_testing();

# Adds a second server, without the restrictions.

sub beside {
	my ($t, $text) = @_;

	my ($server) = $text =~ /^(server \{\n(?:.*\n)*?\}\n)/m
		or die "no server\n";

	$server =~ s/xet_read_only on;|xet_delete off;//;
	$server =~ s/%%PORT_8080%%/%%PORT_8086%%/;

	return $text =~ s/\}\n*\z/$server}\n/r;
}

sub gate {
	my ($name, $conf, %o) = @_;

	return if defined $ENV{GATE_ONLY} && $name !~ /$ENV{GATE_ONLY}/;

	subtest($name => sub {
		my $t = Test::Xet->new(workers => 1, log => 'info');

		prepare($t);
		$t->write_file('users', '');

		# recipes with a "location /" of their own have no pages

		$t->write_conf($conf->($t) =~ s!^http \{\n!$&xet_hub_pages
			/-/index.html;\n!mr);
		$t->run();

		$o{public} = $t->dir() . "/$o{public}" if $o{public};

		Test::Xet::Rights->new($t, brief => 1, %o)->run();

		$t->done();
	});
}

# Returns the other service, which accepts or refuses callers and names them.

sub check {
	my ($who) = @_;

	return <<"EOC";
server {
    listen 127.0.0.1:%%PORT_8081%%;

    location / {
        add_header X-User \$http_x_who;
        $who
    }
}
EOC
}

# Uses the recipe of docs/hub.md, with the map from the xet_hub_owners recipe.

sub owners {
	my ($t) = @_;

	my $hub = recipe($t, 'docs/hub.md', 'recipe: hub')
		=~ s/xet_hub_public on;//r;
	my ($map) = recipe($t, $directives, qr/^### xet_hub_owners\n/m)
		=~ /^(map .*?^\})/ms or die "no map\n";

	$map =~ s/xet_team/owners/;
	$hub =~ s/^map .*?^\}/$map/ms or die "no map\n";

	return $hub;
}

# The token issuer has the private key, and this server the public one.

sub public_keys {
	my ($t) = @_;

	my $dir = $t->dir();

	for ([ qw/ genpkey -algorithm ed25519 -out /, "$dir/ed.key" ],
		[ qw/ pkey -pubout -in /, "$dir/ed.key", '-out',
			"$dir/ed.key.pub" ])
	{
		my ($status, $out) = run_command([ 'openssl', @$_ ]);

		die "openssl: $out\n" if $status;
	}

	chmod(0600, "$dir/ed.key.pub");

	return recipe($t, $access, 'recipe: tokens')
		=~ s!location = /token \{.*?\n    \}!!sr
		=~ s!token\.key;!ed.key.pub;
			xet_token_issuer https://issuer.example;
			xet_token_audience cas;!r;
}
