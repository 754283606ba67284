#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Clients that disconnect while their requests wait in the sockets of a stopped
# worker: by a FIN or a reset, with TLS and without, with close_notify and
# without.  With HTTP/2 a stream may end while its connection stays open.  When
# the worker continues, it begins none of these requests.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Nginx;
use Test::Xet::Process qw/ run_command /;
use Test::Xet::Table;
use Test::Xet::Token;

use IPC::Open2 qw/ open2 /;
use Socket qw/ AF_INET SOCK_STREAM IPPROTO_TCP SOL_SOCKET SO_LINGER
	pack_sockaddr_in inet_aton /;
use Time::HiRes qw/ sleep /;

plan(skip_all => 'no TLS or HTTP/2')
	if Test::Xet::Nginx::version() !~ /--with-http_v2_module/
		|| Test::Xet::Nginx::version() !~ /--with-http_ssl_module/;

my @hub = Test::Xet::Table::hub('xet_auth off;',
	"location /api/v1/ {\n xet_api; xet_auth off; xet_access store; }");

@hub = map { s/xet_delete_scope delete;//r } @hub;

my $t = Test::Xet->new(@hub, workers => 1, server => <<'EOF_CONF');
listen 127.0.0.1:%%PORT_8081%% http2;
listen 127.0.0.1:%%PORT_8082%% ssl;
listen 127.0.0.1:%%PORT_8083%% ssl http2;
ssl_certificate %%DIR%%/cert.pem;
ssl_certificate_key %%DIR%%/cert.key;
EOF_CONF

my ($status, $out) = run_command([ 'openssl', 'req', '-x509', '-newkey',
	'rsa:2048', '-nodes', '-days', 2, '-subj', '/CN=localhost', '-keyout',
	$t->dir() . '/cert.key', '-out', $t->dir() . '/cert.pem' ]);

die "openssl: $out\n" if $status;

$t->token_key();
$t->run();

is($t->post('/api/repos/create', '{"name":"r"}')->{status}, 200, 'a repo');

# --------------------------------------------------------------------------
# the ways to disconnect, for each kind of connection

my %ports = (plain => 'http', h2c => 8081, tls => 8082, h2 => 8083);
my %ways = (
	plain => [ qw/ close reset / ],
	tls => [ qw/ notify close reset / ],
	h2c => [ qw/ cancel goaway close reset / ],
	h2 => [ qw/ cancel goaway notify close reset / ],
);

for my $kind (qw/ plain tls h2c h2 /) {
	for my $way (@{ $ways{$kind} }) {
		gone($kind, $way);
	}
}

# a stream that stays open is served, while another stream of its connection
# ends

my $c = client('h2');

branch('kept');
frozen(sub {
	$c->{send}->(stream(3, 'DELETE', '/api/models/me/r/branch/kept')
		. cancel(3) . stream(5, 'POST',
		'/api/models/me/r/branch/other', '{}'));
	sleep(0.3);
});
ok(wait_for(20, sub { refs() =~ m!heads/other! }),
	'the remaining stream is served');
like(refs(), qr!heads/kept!, 'the ended stream is not begun');
$c->{leave}->('close');

# clients that wait get their responses

for my $kind (qw/ plain tls h2c h2 /) {
	$c = client($kind);
	frozen(sub { ask($c, $kind, 'POST', "/api/models/me/r/branch/s$kind",
		'{}') });
	ok(wait_for(20, sub { refs() =~ m!heads/s$kind"! }),
		"$kind: who waits is served");
	$c->{leave}->('close');
}

$t->done();

# --------------------------------------------------------------------------

sub gone {
	my ($kind, $way) = @_;

	branch("left$kind$way");

	my $file = $t->put('/api/v1/files',
		"a file $kind $way")->json()->{hash};
	my @acts = ([ 'DELETE', "/api/v1/files/$file" ],
		[ 'DELETE', "/api/models/me/r/branch/left$kind$way" ],
		[ 'POST', "/api/models/me/r/branch/late$kind$way", '{}' ],
		[ 'POST', '/api/models/me/r/commit/main', "{\"key\":\"header\","
			. "\"value\":{\"summary\":\"s\"}}\n{\"key\":\"file\","
			. "\"value\":{\"path\":\"$kind$way\","
			. "\"content\":\"x\"}}\n" ]);
	my @c = map { client($kind) } @acts;

	frozen(sub {
		ask($c[$_], $kind, @{ $acts[$_] }) for 0 .. $#acts;
		sleep(0.2);

		for my $c (@c) {
			$c->{send}->(cancel(3)) if $way eq 'cancel';
			$c->{send}->(frame(7, 0, 0, pack('NN', 0, 0)))
				if $way eq 'goaway';
			$c->{leave}->($way eq 'goaway' ? 'close' : $way)
				if $way ne 'cancel';
		}

		sleep(0.3);
	});

	settle();

	my $refs = refs();

	is($t->get("/api/v1/files/$file")->{status}, 200,
		"$kind, $way: a DELETE of a file is not begun");
	like($refs, qr!heads/left$kind$way!,
		"$kind, $way: a DELETE is not begun");
	unlike($refs, qr/late$kind$way/, "$kind, $way: a POST is not begun");
	is($t->get("/me/r/resolve/main/$kind$way")->{status}, 404,
		"$kind, $way: a commit is not begun");

	$_->{leave}->('close') for grep { $way eq 'cancel' } @c;
}

sub ask {
	my ($c, $kind, $method, $uri, $body) = @_;

	return $c->{send}->(stream(3, $method, $uri, $body)) if $kind =~ /h2/;

	$c->{send}->(join("\r\n", "$method $uri HTTP/1.1", 'Host: localhost',
		$body ? ('Content-Length: ' . length($body)) : (), '', '')
		. ($body // ''));
}

# --------------------------------------------------------------------------
# connections: send bytes, and disconnect

sub client {
	my ($kind) = @_;

	my $port = $kind eq 'plain' ? $t->port() : $t->port($ports{$kind});
	my $c = $kind =~ /^(tls|h2)$/ ? tls($port, $kind) : tcp($port);

	# the worker must accept the connection before it is stopped

	if ($kind =~ /h2/) {
		$c->{send}->("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
			. frame(4, 0, 0, '')
			. stream(1, 'GET', '/api/v1/health/live'));

	} else {
		$c->{send}->("GET /api/v1/health/live HTTP/1.1\r\n"
			. "Host: localhost\r\n\r\n");
	}

	die "no answer\n" unless length($c->{read}->());

	return $c;
}

sub tcp {
	my ($port) = @_;

	socket(my $s, AF_INET, SOCK_STREAM, IPPROTO_TCP) or die "socket: $!\n";
	connect($s, pack_sockaddr_in($port, inet_aton('127.0.0.1')))
		or die "connect: $!\n";

	return { send => sub { syswrite($s, $_[0]) },
		read => sub { sysread($s, my $data, 65536); $data },
		leave => sub {
			setsockopt($s, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0))
				if $_[0] eq 'reset';
			close($s);
		} };
}

sub tls {
	my ($port, $kind) = @_;

	my $pid = open2(my $out, my $in, 'python3',
		"$FindBin::Bin/../clients/tls_raw.py", $port,
		$kind eq 'h2' ? 'h2' : 'http/1.1');

	my $line = <$out>;

	die "no TLS\n" unless defined $line;

	return { send => sub { syswrite($in, 'send ' . unpack('H*', $_[0])
			. "\n") },
		read => sub { syswrite($in, "read\n");
			return pack('H*', scalar(<$out>) =~ s/\s//gr) },
		leave => sub { syswrite($in, "$_[0]\n"); close($in);
			waitpid($pid, 0) } };
}

# --------------------------------------------------------------------------
# frames of HTTP/2

sub frame {
	my ($type, $flags, $stream, $data) = @_;

	return substr(pack('N', length($data)), 1)
		. pack('CCN', $type, $flags, $stream) . $data;
}

sub stream {
	my ($id, $method, $uri, $body) = @_;

	my $headers = join('', map { "\0" . chr(length($_->[0])) . $_->[0]
		. chr(length($_->[1])) . $_->[1] } [ ':method', $method ],
		[ ':scheme', 'http' ], [ ':authority', 'localhost' ],
		[ ':path', $uri ], defined $body
			? [ 'content-length', length($body) ] : ());

	return frame(1, defined $body ? 4 : 5, $id, $headers)
		. (defined $body ? frame(0, 1, $id, $body) : '');
}

sub cancel { return frame(3, 0, $_[0], pack('N', 8)) }

# --------------------------------------------------------------------------

sub frozen {
	my ($sub) = @_;

	my @pids = $t->worker_pids();

	kill('STOP', @pids);
	$sub->();
	sleep(0.5);
	kill('CONT', @pids);
}

sub settle {
	sleep(0.3);
	is($t->get('/api/v1/health/live')->{status}, 200,
		'the worker continues');
	wait_for(20, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE state = 'active' AND pid <> pg_backend_pid()"
		. " AND backend_type = 'client backend'") == 0 });
	sleep(0.2);
}

sub branch {
	is($t->post("/api/models/me/r/branch/$_[0]", '{}')->{status}, 200,
		"branch $_[0]");
}

sub refs { return $t->get('/api/models/me/r/refs')->{body} }
