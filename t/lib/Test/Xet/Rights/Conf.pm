package Test::Xet::Rights::Conf;

# Copyright (C) the ngx_http_xet_module authors

# Provides configurations for the tests of access rights: the shipped ones, and
# recipes from the documents, with the paths and ports of the test.
#
#     my $text = recipe($t, 'docs/hub.md', 'recipe: hub');
#     my $text = recipe($t, 'docs/access.md', qr/^## Deletes\n/m);
#
#     $t->write_conf($text);
#
# A recipe is the first nginx block after a marker or a text.  A request header
# tells the server that the request came over TLS, so tests need no TLS.
#
#     my $text = container($t, AUTH => 'off');    docker/entrypoint.sh
#     my $text = setup($t);                       xet-setup

use warnings;
use strict;

use parent qw/ Exporter /;

use File::Copy qw/ copy /;
use File::Path qw/ make_path /;

use Test::Xet;
use Test::Xet::Process qw/ root run_command slurp spew /;

our @EXPORT = qw/ container prepare recipe setup tls wrap /;

# Creates the keys, and the files that a configuration includes.

sub prepare {
	my ($t) = @_;

	$t->conf_locations();
	$t->token_key();

	for my $name (qw/ xet_hub xet_limits xet_audit /) {
		my $text = slurp(root() . "/conf/$name.conf");

		$t->write_file("$name.conf",
			$text =~ s!/var/log/nginx!$t->dir()!gre);
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

# Makes a complete configuration of lines for the http level, or for a server.

sub wrap {
	my ($t, $block, %o) = @_;

	$block = "server {\nlisten 127.0.0.1:8080;\nxet_auth off;\n$block}\n"
		if ($o{level} // '') eq 'server';

	my $http = $o{http} // '';

	return "%%MAIN%%\nevents { worker_connections 512; }\n"
		. "http {\n%%HTTP%%\n%%XET%%\n$http\n" . here($t, $block)
		. "}\n";
}

sub here {
	my ($t, $text) = @_;

	$text =~ s!^\s*ssl_certificate\w* .*\n!!gm;
	$text =~ s!listen 443 ssl;!listen 127.0.0.1:8080;!g;
	$text =~ s/^server \{\n(?!\s*listen)/server {
		listen 127.0.0.1:8080;\n/gm;
	$text =~ s!xet_require_tls on;!xet_require_tls
		\$http_x_forwarded_proto;!g;
	$text =~ s!(?<=127\.0\.0\.1:)(80\d\d)!%%PORT_$1%%!g;
	$text =~ s!/etc/nginx/xet!%%DIR%%!g;
	$text =~ s!/var/lib/xet!%%STORE%%!g;
	$text =~ s!/var/cache/nginx|/var/log/nginx!%%DIR%%!g;

	return $text;
}

# Returns the request header that makes a request count as sent over TLS.

sub tls {
	return { 'X-Forwarded-Proto' => 'https' };
}

# --------------------------------------------------------------------------
# configurations that programs write

# Returns the configuration that docker/entrypoint.sh generates from
# conf/nginx.conf and environment variables, for write_conf().

sub container {
	my ($t, %env) = @_;

	my $run = $t->dir() . '/run';
	my $script = slurp(root() . '/docker/entrypoint.sh');

	# without the main part, only the functions of the script are left

	$script =~ s/^check_variables\n.*//ms or die "entrypoint.sh\n";
	make_path("$run/keys", "$run/temp", $t->dir() . '/data');

	for my $name (map { "$_.key" } qw/ url dedup token /) {
		copy($t->dir() . "/$name", "$run/keys/$name");
		chmod(0600, "$run/keys/$name");
	}

	my ($status, $out) = run_command([ 'sh', '-c',
		"$script\ncheck_variables\nwrite_"
			. ($env{EDGE} ? 'edge' : 'server') ],
		env => { DATA => $t->dir() . '/data', RUN => $run,
			SHARE => root() . '/conf', POSTGRES => $t->conninfo(),
			ADDR => '127.0.0.1', PORT => $t->port(),
			URL_BASE => $t->url(''), %env });

	die "entrypoint.sh: $out\n" if $status;

	my $data = $t->dir() . '/data/store';
	my $store = $t->store();

	for my $name ("$run/xet_location.conf") {
		spew($name, slurp($name) =~ s!\Q$data\E!$store!gr)
			if -e $name;
	}

	return ours($t, slurp("$run/nginx.conf") =~ s!\Q$data\E!$store!gr);
}

# Returns the lines for the http level that xet-setup writes.

sub setup {
	my ($t, %o) = @_;

	my $script = slurp(root() . '/docker/debian/xet-setup');
	my ($tls) = $script =~ /^(write_tls\(\)\n.*?^END\n\}\n)/ms;
	my ($server) = $script =~ /^(write_server\(\)\n.*?^END\n\}\n)/ms;

	die "xet-setup\n" unless $tls && $server;

	my %env = (conf => $t->dir(), store => $t->conf_store(),
		conninfo => $t->conninfo(), cert => '', cert_key => '',
		listen => '127.0.0.1:' . $t->port(), url => $t->url(''),
		auth => 'token', %o);
	my ($status, $out) = run_command([ 'sh', '-c',
		"$tls$server write_server" ], env => \%env);

	die "xet-setup: $out\n" if $status;

	$out =~ s!/var/log/nginx!$t->dir()!ge;
	$out =~ s!open_file_cache\w* .*\n!!g;

	return "%%MAIN%%\nevents { }\nhttp {\n%%HTTP%%\n"
		. $out =~ s!^large_client.*!!mr . "}\n";
}

# Adapts a configuration to the way a test runs nginx.

sub ours {
	my ($t, $text) = @_;

	my $module = Test::Xet::Nginx::module();
	my ($user) = Test::Xet::Nginx::user();

	$text =~ s!^load_module .*!$module eq '' ? ''
		: "load_module $module;"!me;
	$text =~ s!^error_log .*!!m;
	$text =~ s!^pid .*!!m;
	$text =~ s!access_log \S+!access_log %%DIR%%/access.log!;
	$text =~ s!^worker_processes .*!worker_processes 1;!m;
	$text =~ s!open_file_cache\w* .*\n!!g;

	return 'daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log'
		. ' info; ' . (defined $user ? 'user '
			. join(' ', Test::Xet::Nginx::user()) . ';' : '')
		. "\n$text";
}

1;
