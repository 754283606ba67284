#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The harness's HTTP client, with a plain nginx and with servers that misbehave.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience /;

use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw/ sleep time /;

my $t = Test::Xet->new(xet => 0, server => 'client_max_body_size 1m;',
	locations => <<'EOF');
location / {
            root  %%DIR%%/html;
        }

        location /dav/ {
            alias                 %%DIR%%/dav/;
            dav_methods           PUT DELETE;
            create_full_put_path  on;
        }

        location /empty {
            return 204;
        }
EOF

my $text = join('', map { sprintf "%07d\n", $_ } 0 .. 1249);

$t->write_file('html/t.txt', $text);
mkdir($t->dir() . '/dav');
chmod(0777, $t->dir() . '/dav');

$t->run();

# --------------------------------------------------------------------------
# responses

my $r = $t->get('/t.txt');

is($r->{status}, 200, 'status');
is($r->{reason}, 'OK', 'reason');
is($r->{version}, '1.1', 'version');
is($r->{body}, $text, 'body');
ok($r->{complete}, 'complete');
is($r->header_value('CONTENT-LENGTH'), 10000, 'header');
is_deeply($r->{headers}{'content-type'}, [ 'text/plain' ], 'headers');
ok(length($r->{raw}) > 10000, 'raw');

$r = $t->head('/t.txt');
is("$r->{status} " . length($r->{body}), '200 0', 'HEAD');
is($t->get('/empty')->{status}, 204, 'no content');
is($t->get('/none')->{status}, 404, 'not found');

$r = $t->get('/t.txt', { Range => 'bytes=8-15' });
is($r->{status}, 206, 'range');
is($r->{body}, "0000001\n", 'range body');

$r = $t->get('/t.txt', [ Range => 'bytes=0-7,80-95', 'X-A' => undef ]);
is($r->{status}, 206, 'ranges');

my $parts = $r->parts();
is(@$parts, 2, 'parts');
is_deeply([ @{ $parts->[1] }{qw/ start end total body /} ],
	[ 80, 95, 10000, "0000010\n0000011\n" ], 'part');

$r->{body} =~ s/0000010\n/0000010/;
ok(!eval { $r->parts(); 1 }, 'a part too short');
ok(!eval { $t->get('/t.txt')->parts(); 1 }, 'a response without parts');

# --------------------------------------------------------------------------
# connections

my $c = $t->connect();

for my $i (1 .. 3) {
	$r = $c->exchange('GET', '/t.txt', { Range => "bytes=0-$i" });
	is(length($r->{body}), $i + 1, "keep-alive $i");
}

ok(!$c->closed(0.1), 'still open');
$r = $c->exchange('GET', '/', { Connection => 'close' });
ok($c->closed(), 'closed');

$c = $t->connect();
$c->send("GET /t.txt HTTP/1.1\r\nHost: a\r\n\r\n" x 2);
is($c->response('GET')->{body}, $text, 'pipelined 1');
is($c->response('GET')->{body}, $text, 'pipelined 2');
$c->close();

my $start = time();
$r = $t->get('/t.txt', {}, rate => 20000);
is($r->{body}, $text, 'slow reader');
cmp_ok(time() - $start, '>', 0.3, 'was slow');

# --------------------------------------------------------------------------
# bodies

my $big = 'abcdefgh' x 50000;

is($t->put('/dav/a', $big)->{status}, 201, 'PUT');
is($t->put('/dav/b', \$big)->{status}, 201, 'PUT of a reference');
is($t->put('/dav/c', [ 'one', '', 'two' ])->{status}, 201, 'PUT of pieces');
is($t->put('/dav/d', $big, {}, chunked => 1)->{status}, 201, 'chunked');
is($t->put('/dav/e', $big, {}, chunked => 777)->{status}, 201,
	'chunked by size');
is($t->put('/dav/f', [ 'a' .. 'e' ], {}, chunked => 1, pause => 0.02)
	->{status}, 201, 'chunked by pieces');
is($t->put('/dav/g', 'x' x 100, {}, trickle => 10)->{status}, 201,
	'trickled');

my %stored = (a => $big, b => $big, c => 'onetwo', d => $big, e => $big,
	f => 'abcde', g => 'x' x 100);

for (sort keys %stored) {
	ok($t->read_file("dav/$_") eq $stored{$_}, "stored $_");
}

$r = $t->put('/dav/h', 'body', {}, expect => 1);
is($r->{status}, 201, 'expect');

$r = $t->put('/dav/h', 'x' x (2 << 20), {}, expect => 1);
is($r->{status}, 413, 'expect refused');

$r = $t->put('/dav/h', 'x' x (4 << 20));
is($r->{status}, 413, 'early response while sending');

$c = $t->http_start('PUT', '/dav/i', { 'Content-Length' => 10 }, '12345');
ok(!$c->closed(0.2), 'half a request');
$c->send('67890');
is($c->response('PUT')->{status}, 201, 'the second half of a request');
is($t->read_file('dav/i'), '1234567890', 'both halves are stored');
$c->close();

for my $how (qw/ close abort half_close /) {
	$c = $t->http_start('PUT', "/dav/$how", { 'Content-Length' => 10 },
		'12345');
	sleep(0.05);
	$c->$how();
}

sleep(0.1);
ok(!-e $t->dir() . "/dav/$_", "$_: not stored")
	for qw/ close abort half_close /;

my $from = $t->log_size();
$t->get('/t.txt');
ok($t->wait_log(qr/GET \/t.txt/, 2, $from), 'log from an offset');

# --------------------------------------------------------------------------
# servers that misbehave; each server gets one request

sub server {
	my ($code, $timeout) = @_;

	my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1',
		LocalPort => 0, Proto => 'tcp') or die "$!\n";

	my $pid = fork();
	die "fork() failed: $!\n" unless defined $pid;

	if ($pid == 0) {
		my $c = $s->accept();
		$c->autoflush(1);
		sysread($c, my $request, 65536);
		$code->($c);
		POSIX::_exit(0);
	}

	my $r = Test::Xet::HTTP->request($s->sockport(), 'GET', '/', {}, undef,
		timeout => $timeout || 20);
	kill('KILL', $pid);
	waitpid($pid, 0);

	return $r;
}

my $head = "HTTP/1.1 200 OK\r\n";

$start = time();
$r = server(sub {
	my $c = shift;
	print $c "${head}Transfer-Encoding: chunked\r\n\r\n";

	for ('{"n":1}' . "\n", '{"n":2', "}\n{\"n\":3}") {
		printf $c "%x\r\n%s\r\n", length($_), $_;
		sleep(1);
	}

	print $c "0\r\n\r\n";
});

my $whole = time() - $start;

ok($r->{complete}, 'chunked response');

my $frames = $r->frames();
is_deeply([ map { $_->{data}{n} } @$frames ], [ 1, 2, 3 ], 'frames');
cmp_ok($frames->[0]{time}, '<', $frames->[1]{time} - 0.5,
	'the first frame at once');
cmp_ok($frames->[1]{time}, '>', 1.5, 'the second frame when it was complete');
cmp_ok($frames->[1]{time}, '<', $whole - 0.2, 'but not later');

$r = server(sub {
	print { $_[0] } "HTTP/1.1 100 Continue\r\n\r\n"
		. "${head}Content-Length: 2\r\n\r\nok";
});
is("$r->{status} $r->{interim} $r->{body}", '200 1 ok', 'interim');

my %bad = (
	'no response' => '',
	'truncated response' => "${head}Content-Length: 9\r\n\r\nshort",
	'bad status line "HTTP/1.1 2000 OK"' => "HTTP/1.1 2000 OK\r\n\r\n",
	'bad header "no colon"' => "${head}no colon\r\n\r\n",
	'bad framing' => "${head}Content-Length: 1\r\n"
		. "Transfer-Encoding: chunked\r\n\r\n",
	'bad chunk size "x"' => "${head}Transfer-Encoding: chunked\r\n\r\n"
		. "x\r\n",
	'no CRLF after a chunk' => "${head}Transfer-Encoding: chunked\r\n\r\n"
		. "1\r\naa\r\n0\r\n\r\n"
);

for my $error (sort keys %bad) {
	$r = server(sub { print { $_[0] } $bad{$error} });
	is($r->{error}, $error, $error);
}

$start = time();
$r = server(sub { sleep(600) }, 1);
is($r->{error}, 'timeout', 'timeout');
cmp_ok(time() - $start, '<', patience(5), 'in time');

$t->done();
