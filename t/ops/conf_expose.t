#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Configurations that let callers bypass a Hub, in any server: nginx refuses
# them and names the line of the directive, unless "xet_hub_expose" allows them.
# If "xet_hub_expose" allows nothing, nginx refuses that directive.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(workers => 1);

$t->token_key();

my $cas = "location /cas/ {\nxet_api;\nxet_api_base /cas;\nxet_auth token;\n"
	. "client_max_body_size 80m;\n}\n";
my $hub = "location / {\nxet_hub on;\nxet_auth token;\nxet_api_base /cas;\n}\n"
	. $cas;
my $open = $hub =~ s/xet_auth token/xet_auth off/r;

# Returns an API location with these lines.

sub api {
	my ($lines, $path) = @_;

	$path //= '/api';

	return "location $path/ {\nxet_api;\nxet_api_base $path;\n"
		. "client_max_body_size 80m;\n$lines\n}\n";
}

# Tests a configuration of several servers, each with its own address; "!!"
# marks the line that the message must name.

sub said {
	my (@servers) = @_;

	my $port = 8080;
	my $text = $t->expand("%%MAIN%%\nevents { }\nhttp {\n%%HTTP%%\n"
		. "%%XET%%\nxet_token_key %%DIR%%/token.key;\n" . join('', map {
			"server {\nlisten 127.0.0.1:%%PORT_" . $port++
			. "%%;\nlocation /xorbs/ { %%DATA%% }\n$_\n}\n"
		} @servers) . "}\n");

	my @lines = split(/\n/, $text);
	my ($marked) = grep { $lines[$_ - 1] =~ /!!/ } 1 .. @lines;

	return ($t->config_test($text =~ s/!!//gr), $marked);
}

sub refused {
	my ($name, $words, @servers) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($good, $out, $line) = said(@servers);

	ok(!$good, "refused: $name");
	like($out, qr/\[emerg\] .*$words.* in \S+:$line$/m,
		"refused: $name: why, and where");
}

sub taken {
	my ($name, @servers) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($good, $out) = said(@servers);

	ok($good, "taken: $name") or diag($out);
}

# --------------------------------------------------------------------------
# configurations that let callers bypass the Hub, and some that do not

my %leaks = (
	'without tokens' => [ 'xet_auth off', '!!xet_auth off;' ],
	'of the store' => [ 'xet_access store',
		"xet_auth token;\n!!xet_access store;" ],
	'dedup of the store' => [ 'xet_dedup_scope store',
		"xet_auth token;\n!!xet_dedup_scope store;" ],
	'URLs of whole xorbs' => [ 'xet_url_mode cacheable',
		"xet_auth token;\n!!xet_url_mode cacheable;" ]
);

for my $name (sort keys %leaks) {
	my ($words, $lines) = @{ $leaks{$name} };
	my $expose = "$lines\nxet_hub_expose on;" =~ s/!!//r;
	my $api = $lines =~ s/!!//r;

	refused($name, qr/\Q$words\E.*"xet_hub_expose on;"/, $hub
		. api($lines));
	refused("$name, in another server", qr/\Q$words\E/, $hub,
		api($lines));
	refused("$name, said by the server", qr/\Q$words\E/,
		$hub . "$lines\n" . api(''));
	refused("$name, a second prefix", qr/location "\/b\/".*\Q$words\E/,
		$hub . api('xet_auth token;') . api($lines, '/b'));
	refused("$name, within a location", qr/\Q$words\E/,
		$hub . "location /api/ {\n$lines\nlocation ~ x {\nxet_api;\n}"
		. "\n}\n");
	refused("$name, by a regular expression", qr/\Q$words\E/,
		$hub . "$lines\nlocation ~ ^/x/ {\nxet_api;\n}\n");
	refused("$name, allowed in another location", qr/\Q$words\E/,
		$hub . api($lines) . api($expose, '/b'));

	taken("$name, allowed", $hub . api($expose));
	taken("$name, allowed by the server", $hub
		. "xet_hub_expose on;\n" . api($api));
	taken("$name, allowed in another server", $hub,
		"xet_hub_expose on;\n" . api($api));
	taken("$name, beside an open Hub", $open . api($api));
	taken("$name, without a Hub", api($api));
}

refused('what tokens of the Hub lead to', qr/cacheable/,
	$hub =~ s/xet_api;/xet_api;\n!!xet_url_mode cacheable;/r);
refused('the default of an outer location', qr/xet_auth off/,
	$hub . "location /o/ {\nxet_auth token;\nlocation /o/i/ {\nxet_api;\n"
	. "!!xet_auth off;\n}\n}\n");
refused('an open Hub beside it', qr/opens all repos to everyone/,
	$hub, $open =~ s/xet_auth off/!!xet_auth off/r);
taken('an open Hub beside it, allowed', $hub,
	"$open\nxet_hub_expose on;\n");
taken('the default', $hub . api('xet_auth token;'));
taken('repos', $hub . api("xet_auth token;\nxet_access repo;"));
taken('telemetry', "xet_auth off;\n$hub location = /v1/telemetry {\n"
	. "xet_api;\nxet_api_base \"\";\n}\n");
refused('one URI that is read', qr/xet_auth off/,
	"!!xet_auth off;\n$hub location = /v1/reconstructions {\nxet_api;\n"
	. "xet_api_base \"\";\n}\n");

# --------------------------------------------------------------------------
# Hubs that have name spaces to protect, and Hubs that do not

for my $lines ("xet_hub_user \$http_x_user;", 'xet_hub_owners team;',
	"xet_hub_owners \$http_x;")
{
	my $front = $open =~ s/xet_auth off;/xet_auth off;\n$lines/r;

	refused("a front: $lines", qr/xet_auth off/,
		$front . api('!!xet_auth off;'));
}

taken('all name spaces are everybody\'s', ($open =~
	s/xet_auth off;/xet_auth off;\nxet_hub_owners *;/r)
	. api('xet_auth off;'));

# --------------------------------------------------------------------------
# "xet_hub_expose" in places where nothing needs to be allowed

for (
	[ 'no Hub', api("xet_auth off;\n!!xet_hub_expose on;") ],
	[ 'an open Hub', $open . api("xet_auth off;\n!!xet_hub_expose on;") ],
	[ 'repos', $hub . api("xet_auth token;\n!!xet_hub_expose on;") ],
	[ 'the Hub itself', $hub =~ s/xet_hub on;/$&\n!!xet_hub_expose on;/r ],
	[ 'a server', "$hub\n!!xet_hub_expose on;\n" . api('xet_auth token;') ],
	[ 'a server beside', $hub . api("xet_auth off;\nxet_hub_expose on;"),
		"!!xet_hub_expose on;\n" . api('xet_auth token;') ]
) {
	my ($name, @servers) = @$_;

	refused("nothing to allow: $name", qr/on" has no effect/, @servers);
}

taken('off allows nothing', api("xet_auth off;\nxet_hub_expose off;"));
refused('another word', qr/must be "on" or "off"/,
	api("xet_auth off;\n!!xet_hub_expose yes;"));

$t->run();
$t->done();
