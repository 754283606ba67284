package Test::Xet::Rights::Conf;

# Copyright (C) the ngx_http_xet_module authors

# Configurations for the gate of rights: what is shipped, and recipes as the
# documents have them, with the paths and ports of a test.
#
#     my $text = recipe($t, 'docs/hub.md', 'recipe: hub');
#     my $text = recipe($t, 'docs/operations.md', qr/\*\*Deleting/);
#
#     $t->write_conf($text);
#
# A recipe is the first block of nginx behind a mark or a text.  TLS is what a
# header says, so that a request needs no handshake.

use warnings;
use strict;

use parent qw/ Exporter /;

use Test::Xet;
use Test::Xet::Process qw/ root slurp /;

our @EXPORT = qw/ prepare recipe tls wrap /;

# The files that a configuration includes, and the keys.

sub prepare {
	my ($t) = @_;

	$t->conf_locations();
	$t->token_key();

	for my $name (qw/ xet_hub xet_limits xet_audit /) {
		$t->write_file("$name.conf", slurp(root()
			. "/conf/$name.conf") =~ s!/var/log/nginx!$t->dir()!gre);
	}
}

sub recipe {
	my ($t, $doc, $behind, %o) = @_;

	my $text = slurp(root() . "/$doc");

	$behind = ref $behind ? $behind : qr/<!-- \Q$behind\E -->/;

	my ($block) = $text =~ /$behind.*?^ *```nginx\n(.*?)^ *```/ms
		or die "$doc: no block behind $behind\n";

	return wrap($t, $block, %o);
}

# A part of a configuration at the level of http, or of a server.

sub wrap {
	my ($t, $block, %o) = @_;

	$block = "server {\nlisten 127.0.0.1:8080;\nxet_auth off;\n$block}\n"
		if ($o{level} // '') eq 'server';

	my $http = ($o{http} // '') . ($ENV{GATE_HTTP} // '');

	return "%%MAIN%%\nevents { worker_connections 512; }\n"
		. "http {\n%%HTTP%%\n%%XET%%\n$http\n" . here($t, $block) . "}\n";
}

sub here {
	my ($t, $text) = @_;

	$text =~ s!^\s*ssl_certificate\w* .*\n!!gm;
	$text =~ s!listen 443 ssl;!listen 127.0.0.1:8080;!g;
	$text =~ s!xet_require_tls on;!xet_require_tls
		\$http_x_forwarded_proto;!g;
	$text =~ s!(?<=127\.0\.0\.1:)(80\d\d)!%%PORT_$1%%!g;
	$text =~ s!/etc/nginx/xet!%%DIR%%!g;
	$text =~ s!/var/lib/xet!%%STORE%%!g;
	$text =~ s!/var/cache/nginx|/var/log/nginx!%%DIR%%!g;

	return $text;
}

# What each request has then.

sub tls {
	return { 'X-Forwarded-Proto' => 'https' };
}

1;
