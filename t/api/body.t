#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# How request bodies arrive: split anywhere, into buffers of any size, slowly,
# truncated, and while the server reloads or stops.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience run_command slurp /;

use Time::HiRes qw/ sleep time /;

# One location for each pair of buffer sizes.

my @sizes = map { my $body = $_; map { [ $body, $_ ] } qw/ 1k 8k 1m / }
	qw/ 16k 100000 2m /;

# equal sizes: nginx's own buffer becomes the job buffer and is not copied

push @sizes, map { [ $_, $_ ] } qw/ 16k 100000 /;

sub location {
	my ($name, @directives) = @_;

	return join("\n            ", "location /$name/ {", 'xet_api;',
		"xet_api_base /$name;", 'xet_auth off;',
		'client_max_body_size 80m;',
		'error_page 400 408 413 @xet_error;', @directives) . "\n"
		. "        }\n        ";
}

my $locations = join('', map {
	location("b$_->[0]-$_->[1]", "xet_body_buffer $_->[0];",
		"client_body_buffer_size $_->[1];")
} @sizes) . location('slow', 'client_body_timeout 2s;');

my $http2 = 1;
$http2 = 0 if Test::Xet::Nginx::version() !~ /--with-http_v2_module/;
$http2 = 0 if `curl -V 2>&1` !~ /^Features:.* HTTP2\b/m;

my $conf = Test::Xet::default_conf();

my $t = Test::Xet->new(conf => $conf, log => 'info', connections => 4096,
	pg_params => 'lock_timeout=5m',
	main => "worker_rlimit_nofile 8192;\n" . 'worker_shutdown_timeout 60s;',
	http => <<'EOC', server => $locations
log_format pid '$pid $status $request';
    access_log %%DIR%%/pid.log pid;
EOC
	. ($http2 ? 'listen 127.0.0.1:%%PORT_8082%% http2;' : ''));

$t->run();

my $route = '/api/v1/xorbs/default';
my $true = '200 {"was_inserted":true}';
my $false = '200 {"was_inserted":false}';
my $seed = 0;

sub answer { return $_[0]->summary() }

sub fresh {
	my ($size, @o) = @_;

	return make_xorb(random_bytes(++$seed, $size), scheme => 'none', @o);
}

sub uri {
	return "$route/$_[0]->{hash}";
}

sub length_of {
	return { 'Content-Length' => length($_[0]->{bytes}) };
}

# Starts an upload, waits until a worker reads the request, and sends n bytes of
# the body.

sub begin {
	my ($x, $n) = @_;

	my $c = $t->http_start('POST', uri($x), {
		'Content-Length' => length($x->{bytes}),
		'Expect' => '100-continue' });

	die "no 100\n" if $c->response('POST', interim => 1)->{status} != 100;
	$c->send(substr($x->{bytes}, 0, $n));

	return $c;
}

# Lists all files of the store and all rows; equal results show that nothing
# was added.

sub all {
	my %rows = %{ $t->rows() };

	return join(' ', scalar(() = $t->files_in_store()),
		map { "$_ $rows{$_}" } sort keys %rows);
}

# --------------------------------------------------------------------------
# a body in two parts, split at each byte around each header

my $x = fresh(40000, sizes => [ 9000 ]);
my (%wrong, %cuts);
my $c = $t->connect();

is(answer($t->post(uri($x), \$x->{bytes})), $true, 'in one piece');

for my $chunk (@{ $x->{chunks} }) {
	$cuts{$_} = 1 for grep { $_ > 0 && $_ < length($x->{bytes}) }
		map { $chunk->{stored_start} + $_ } -2 .. 10;
}

for my $cut (sort { $a <=> $b } keys %cuts) {
	for my $chunked (0, 1) {
		$c->start('POST', uri($x), $chunked
			? { 'Transfer-Encoding' => 'chunked' }
			: length_of($x));

		my @pieces = (substr($x->{bytes}, 0, $cut),
			substr($x->{bytes}, $cut));

		$c->send_body(\@pieces, pause => 0.002, chunked => $chunked);

		my $answer = answer($c->response('POST'));
		$wrong{"$cut $chunked"} = $answer if $answer ne $false;
	}
}

is_deeply(\%wrong, {}, 'cut at each byte around ' . @{ $x->{chunks} }
	. ' headers');

# a chunk header that starts at each offset around the end of a job buffer

%wrong = ();

for my $first (16384 - 19 .. 16384) {
	for my $chunked (0, 1, 100) {
		my $buffers = $first % 2 ? '16k-8k' : '16k-16k';
		my $y = make_xorb(substr(random_bytes(99, 40000), 0, 40000),
			scheme => 'none', sizes => [ $first, 5000 ]);

		my $answer = answer($t->post(
			"/b$buffers/v1/xorbs/default/$y->{hash}", \$y->{bytes},
			{}, chunked => $chunked));
		my $want = $chunked ? $false : $true;

		$wrong{"$first $chunked"} = $answer if $answer ne $want;
	}
}

is_deeply(\%wrong, {}, 'headers at each byte around the edge of a buffer');

# bodies that end at the end of a buffer

%wrong = ();

for my $size (16383, 16384, 16385, 32768, 49152, 99999, 100000, 100001) {
	my $y = fresh($size - 8, sizes => [ $size - 8 ]);

	for my $buffer (qw/ 16k-1k 16k-1m 16k-16k 100000-8k
		100000-100000 /)
	{
		for my $chunked (0, 1, 16384) {
			my $answer = answer($t->post("/b$buffer/v1/xorbs"
				. "/default/$y->{hash}", \$y->{bytes}, {},
				chunked => $chunked));

			$wrong{"$size $buffer $chunked"} = $answer
				if $answer !~ /^200 /;
		}
	}
}

is_deeply(\%wrong, {}, 'bodies that end with a buffer');

# a first part of the body that leaves a job buffer empty, partly filled or
# full; the rest arrives in one write and fills nginx's buffers

%wrong = ();

for my $first (0, 1, 700, 16383, 16384, 16385, 24000, 40000) {
	for my $chunked (0, 1) {
		my $y = fresh(500000, sizes => [ 50000 ]);
		my $head = $chunked ? { 'Transfer-Encoding' => 'chunked' }
			: length_of($y);

		for my $want ($true, $false) {
			$c->start('POST',
				"/b16k-16k/v1/xorbs/default/$y->{hash}",
				$head);
			sleep(0.01);
			$c->send_body([ grep { length }
				substr($y->{bytes}, 0, $first),
				substr($y->{bytes}, $first) ], pause => 0.01,
				chunked => $chunked);

			my $answer = answer($c->response('POST'));

			$wrong{"$first $chunked"} = $answer if $answer ne $want;
		}
	}
}

is_deeply(\%wrong, {}, 'a first part of any size, then full buffers');

# a body that arrives one byte at a time

$c->start('POST', uri($x), length_of($x));
$c->send(substr($x->{bytes}, 0, 300), trickle => 1, pause => 0.0005);
$c->send(substr($x->{bytes}, 300, -300));
$c->send(substr($x->{bytes}, -300), trickle => 1, pause => 0.0005);
is(answer($c->response('POST')), $false, 'bytes one by one');

$c->start('POST', uri($x), { 'Transfer-Encoding' => 'chunked' });
$c->send_chunk($_, trickle => 3, pause => 0.0005)
	for unpack('(a1)200', $x->{bytes});
$c->send_body(substr($x->{bytes}, 200), chunked => 1);
is(answer($c->response('POST')), $false, 'chunks of one byte, in pieces');
$c->close();

# --------------------------------------------------------------------------
# sizes of buffers

$x = fresh(3 << 20);
my $lz4 = make_xorb(mix(++$seed, 3 << 20), scheme => 'auto');

is(answer($t->post(uri($_), \$_->{bytes})), $true, 'a xorb of 3 MiB')
	for $x, $lz4;

for (@sizes) {
	my ($body, $client) = @$_;
	my $uri = "/b$body-$client/v1/xorbs/default";

	for my $y ($x, $lz4) {
		for my $chunked (0, 1, 30011) {
			is(answer($t->post("$uri/$y->{hash}", \$y->{bytes},
				{}, chunked => $chunked)), $false,
				"xet_body_buffer $body,"
				. " client_body_buffer_size $client,"
				. " chunked $chunked");
		}
	}
}

# --------------------------------------------------------------------------
# HTTP/2

SKIP: {
	skip 'no HTTP/2', 16 unless $http2;

	my $dir = $t->dir();
	my $port = $t->port(8082);

	my $curl = sub {
		my ($uri, $body, @options) = @_;

		$t->write_file('curl.body', $body);
		my ($status, $out) = run_command([ 'curl', '-sS',
			'--http2-prior-knowledge', '-m', 30,
			'-w', ' %{http_version}', @options,
			'--data-binary', "\@$dir/curl.body",
			"http://127.0.0.1:$port$uri" ]);

		return $status == 0 ? $out : "curl $status $out";
	};

	my $y = fresh(3 << 20);
	is($curl->(uri($y), $y->{bytes}), '{"was_inserted":true} 2', 'HTTP/2');
	is($curl->(uri($y), $y->{bytes}, '--limit-rate', '6M'),
		'{"was_inserted":false} 2', 'HTTP/2, slowly');

	for my $size (qw/ b16k-1k b2m-8k /) {
		is($curl->("/$size/v1/xorbs/default/$y->{hash}", $y->{bytes}),
			'{"was_inserted":false} 2', "HTTP/2, $size");
	}

	my $small = fresh(1000);
	is($curl->(uri($small), $small->{bytes}),
		'{"was_inserted":true} 2', 'HTTP/2, a small one');

	like($curl->(uri($y), ''), qr/"invalid_xorb".* 2\z/,
		'HTTP/2, an empty one');
	like($curl->(uri($y), $small->{bytes}), qr/"hash_mismatch".* 2\z/,
		'HTTP/2, a wrong hash');

	my $before = all();
	like($curl->(uri($y), random_bytes(5, 5 << 20)),
		qr/\A\{"error":\{"code":"invalid_xorb".* 2\z/,
		'HTTP/2, a large bad body gets its response');
	like($curl->('/api/v1/shards', random_bytes(5, 5 << 20)),
		qr/\A\{"error":\{"code":"invalid_shard".* 2\z/,
		'HTTP/2, a shard');
	is(all(), $before, 'HTTP/2, nothing left');

	for my $rate (qw/ 1M 5M /) {
		like($curl->(uri($y), $y->{bytes}, '--limit-rate', $rate,
			'-m', 0.2), qr/^curl /, 'HTTP/2, aborted');
	}

	ok(wait_for(5, sub { !$t->temp_files() }), 'HTTP/2, no files');
	is(all(), $before, 'HTTP/2, still nothing left');
	is($curl->(uri($y), $y->{bytes}), '{"was_inserted":false} 2',
		'HTTP/2, the next upload');
}

# --------------------------------------------------------------------------
# clients that disconnect

# Opens all write sessions: uploads wait for a lock on the table of their rows.

sub all_sessions {
	my $y = fresh(1000);
	my $lock = $t->pg_lock('xet.xorbs');
	my @c = map { $t->http_start('POST', uri($y), length_of($y),
		$y->{bytes}) } 1 .. 12;

	wait_for(10, sub { $t->pg_blocked() == 4 })
		or diag('not all sessions are in use');
	$lock->unlock();

	$_->response('POST') for @c;
	$_->close() for @c;
	$t->head(uri($y));

	$t->fds_mark();
}

my @pids = $t->worker_pids();

all_sessions();

my $before = all();

$x = fresh(300000, sizes => [ 60000 ]);

for my $how (qw/ close abort /) {
	for my $at (0, 3, 8, 100, 60008, 60011, 262144, 262145, 299999) {
		for my $chunked (0, 1) {
			my $c = $t->http_start('POST', uri($x), $chunked
				? { 'Transfer-Encoding' => 'chunked' }
				: length_of($x));

			$chunked ? $c->send("7ffff\r\n"
					. substr($x->{bytes}, 0, $at))
				: $c->send(substr($x->{bytes}, 0, $at));
			sleep(0.01);
			$c->$how();
		}
	}
}

# clients that disconnect after the whole body has arrived

$c = $t->http_start('POST', uri($x), length_of($x), $x->{bytes});
$c->half_close();
my $r = $c->response('POST');
$c->close();
ok($r->{status} == 200 || $r->{error}, "half-closed: $r->{status}");

is(answer($t->post(uri($x), \$x->{bytes})), $r->{status} == 200 ? $false
	: $true, 'the next upload');

my $lock = $t->pg_lock('xet.xorbs');

for my $how (qw/ close abort /) {
	$c = $t->http_start('POST', uri($x), length_of($x), $x->{bytes});
	sleep(0.1);
	$c->$how();
}

sleep(0.1);
$lock->unlock();

is(answer($t->post(uri($x), \$x->{bytes})), $false, 'left in the query');
ok(wait_for(5, sub { !$t->temp_files() }), 'no temporary files');
is_deeply([ $t->worker_pids() ], \@pids, 'the worker lives');

(my $want = $before) =~ s/^(\d+)/$1 + 1/e;
$want =~ s/( xorbs| gc_xorbs| charges) (\d+)/"$1 " . ($2 + 1)/eg;
is(all(), $want, 'one xorb, nothing else');
$t->check_fds();

# --------------------------------------------------------------------------
# slow clients

my $slow = '/slow/v1/xorbs/default';

$t->fds_mark();
$before = all();
$x = fresh(300000);

my $start = time();
my %slow = map { $_ => $t->http_start('POST', "$slow/$x->{hash}",
	length_of($x), substr($x->{bytes}, 0, $_)) } 0, 100, 290000;

for my $at (sort keys %slow) {
	my $r = $slow{$at}->response('POST', timeout => 5);

	ok($r->{status} == 408 || $r->{error} eq 'no response',
		"idle after $at bytes: status $r->{status}");
	cmp_ok(time() - $start, '<', patience(5), 'in time');
	cmp_ok(time() - $start, '>', 1.7, 'not at once');
	$slow{$at}->close();
}

ok(wait_for(5, sub { !$t->temp_files() }), 'no temporary files');
is(all(), $before, 'nothing left');
$t->check_fds();

# the timeout applies neither to the complete request nor to the server's own
# work

$c = $t->http_start('POST', "$slow/$x->{hash}", length_of($x));

for my $piece (unpack('(a80000)*', $x->{bytes})) {
	$c->send($piece);
	sleep(0.7);
}

is(answer($c->response('POST')), $true, 'slower than the timeout in all');
$c->close();

$lock = $t->pg_lock('xet.xorbs');
$c = $t->http_start('POST', "$slow/$x->{hash}", length_of($x), $x->{bytes});
is($c->read_some(1, 3), '', 'the database is slow');
$lock->unlock();
is(answer($c->response('POST')), $false, 'and the upload succeeds');
$c->close();

# --------------------------------------------------------------------------
# an error early in a large body: the client can read the response, whether it
# reads while sending or not

my $large = random_bytes(7, 20 << 20);

for my $chunked (0, 100000) {
	my $r = $t->post("$route/" . 'ab' x 32, \$large, {},
		chunked => $chunked, timeout => 20);

	is($r->{status}, 400, "20 MiB of noise, chunked $chunked");
	is($r->json()->{error}{code}, 'invalid_xorb', 'its code');
	ok(!$r->{error}, 'a complete response');
}

$c = $t->http_start('POST', "$route/" . 'ab' x 32,
	{ 'Content-Length' => length($large) }, substr($large, 0, 300000));

for my $n (1 .. 20) {
	sleep(0.02);
	$c->send(substr($large, $n * 500000, 500000));
}

is($c->{send_error} // 'none', 'none', 'the server keeps reading for a while');
is($c->response('POST')->{status}, 400, 'the response waits for the client');
$c->close();

# --------------------------------------------------------------------------
# many half-open uploads

my ($limit) = (`sh -c 'ulimit -n'` =~ /^(\d+)/, 1024);
my $n = $limit > 1200 ? 1000 : 300;

$before = all();
$t->fds_mark();

my $rss = $t->rss();
my @idle = map {
	$t->http_start('POST', uri($x), { 'Content-Length' => 60 << 20 },
		substr($x->{bytes}, 0, $_ % 10 ? 1000 : 300000))
} 1 .. $n;

my $y = fresh(500000);
$start = time();

is(answer($t->post(uri($y), \$y->{bytes})), $true,
	"an upload among $n idle ones");
cmp_ok(time() - $start, '<', patience(5), 'in time');
cmp_ok($t->rss() - $rss, '<', $n * 256, "memory for $n idle ones, KiB");
diag("$n idle uploads take " . ($t->rss() - $rss) . ' KiB')
	if $ENV{XET_TEST_VERBOSE};

$_->close() for @idle;
@idle = ();
$t->check_fds();

ok(wait_for(5, sub { !$t->temp_files() }), 'no temporary files');

# --------------------------------------------------------------------------
# reload and stop

sub reload_during {
	my ($name) = @_;

	my $y = fresh(600000);
	my $c = begin($y, 300000);
	my @old = $t->reload();

	is(answer($t->post(uri($x), \$x->{bytes})), $false,
		"$name: the new worker");

	$c->send(substr($y->{bytes}, 300000));
	is(answer($c->response('POST')), $true, "$name: an upload continues");
	$c->close();

	ok(wait_for(5, sub { $t->read_file('pid.log')
		=~ m!^(?:@{[ join '|', @old ]}) 200 POST \S*\Q$y->{hash}\E!m }),
		"$name: in the old worker");
	ok(wait_for(5, sub { !grep { kill(0, $_) } @old }),
		"$name: the old worker exits");
}

reload_during('reload');

$y = fresh(600000);
$c = begin($y, 300000);

@pids = $t->worker_pids();
kill('QUIT', $t->nginx()->pid());
ok(wait_for(5, sub { !eval { $t->connect(); 1 } }), 'stop: no connections');
sleep(0.2);
is(scalar(grep { kill(0, $_) } @pids), 1, 'stop: the worker waits');

$c->send(substr($y->{bytes}, 300000));
is(answer($c->response('POST')), $true, 'stop: an upload continues');
$c->close();

ok($t->stop(), 'stop: done');

# --------------------------------------------------------------------------
# named temporary files

SKIP: {
	skip('objects have no temporary files', 12) if $t->s3();

	$t->write_conf($conf,
		directives => { xet_store => '%%STORE%% temp=named' });
	$t->run();
	all_sessions();

	$y = fresh(600000);
	$c = begin($y, 400000);
	ok(wait_for(5, sub { 1 == (() = $t->temp_files()) }), 'named: a file');
	$c->send(substr($y->{bytes}, 400000));
	is(answer($c->response('POST')), $true, 'named: an upload');
	ok($t->copy_bytes($t->copy($y->{hash})) eq $y->{bytes},
		'named: stored');
	is(answer($c->exchange('POST', uri($y), {}, \$y->{bytes})), $false,
		'named: again');
	$c->close();
	ok(wait_for(5, sub { !$t->temp_files() }), 'named: nothing left');

	my $file = $t->upload(mix(++$seed, 300000));
	is($file->{result}, 1, 'named: a shard');

	$before = all();

	$r = $t->post(uri($y), substr($y->{bytes}, 0, -1));
	is($r->{status}, 400, 'named: a bad one');

	for my $how (qw/ close abort /) {
		$c = $t->http_start('POST', uri($x), length_of($x),
			substr($x->{bytes}, 0, 290000));
		sleep(0.05);
		$c->$how();
	}

	ok(wait_for(5, sub { !$t->temp_files() }),
		'named: no temporary files left');
	is(all(), $before, 'named: nothing stored');
	$t->check_fds();

	# a crash leaves temporary files, whose names begin with the process
	# id; a later worker may get the same process id

	my ($pid) = $t->worker_pids();
	my @left = map { "$pid-$_" } 0 .. 40;
	$t->write_file("store/tmp/$_", 'left') for @left;

	$y = fresh(600000);
	is(answer($t->post(uri($y), \$y->{bytes})), $true,
		'named: a name in use');
	unlink($t->store() . "/tmp/$_") for @left;

	reload_during('named');
}

$t->run() if $t->s3();

# --------------------------------------------------------------------------
# worker_shutdown_timeout: clients that still send when a worker must exit

$t->write_conf(do { (my $c = $conf) =~ s/events/worker_shutdown_timeout 1s;
	events/; $c }, main => 'worker_rlimit_nofile 8192;',
	directives => { xet_store => $t->conf_store() });
$t->reload();

$x = fresh(600000);
$y = fresh(1000);
$lock = $t->pg_lock('xet.xorbs');

my @left_open = ((map { begin($x, $_) } 0, 1000, 400000), begin($y, 10000));
sleep(0.2);

my @old = $t->reload();
ok(wait_for(8, sub { !grep { kill(0, $_) } @old }),
	'worker_shutdown_timeout: the old worker exits');
ok($_->closed(), 'its client is gone') for @left_open;
$_->close() for @left_open;
$lock->unlock();

is(answer($t->post(uri($x), \$x->{bytes})), $true, 'a new one can upload');
ok(wait_for(5, sub { !$t->temp_files() }), 'no temporary files');

# --------------------------------------------------------------------------
# one thread and a short queue: some uploads are refused, and nothing is lost

$t->write_conf($conf, main => 'thread_pool tiny threads=1 max_queue=2;',
	directives => { xet_store => $t->conf_store(),
		xet_thread_pool => 'tiny' });
$t->reload();

$before = all();

my @many = map { fresh(400000) } 1 .. 4;
my %answers;
my @c = map {
	my $y = $many[ $_ % 4 ];
	[ $y, $t->http_start('POST', uri($y), length_of($y)) ]
} 1 .. 40;

for my $pos (0, 150000, 300000) {
	$_->[1]->send(substr($_->[0]{bytes}, $pos, 150000)) for @c;
}

for (@c) {
	my $r = $_->[1]->response('POST');

	$answers{"$r->{status} " . ($r->{error} // '')}++;
	$answers{$r->{body}}++ if $r->{status} != 200;
	$_->[1]->close();
}

diag(explain(\%answers)) if $ENV{XET_TEST_VERBOSE};

is($answers{'200 '} // 0, 40 - ($answers{'503 '} // 0),
	'a full queue: 200 or 503') or diag(explain(\%answers));

# the jobs that close files of the refused uploads fill the queue as well

for my $y (@many) {
	ok(wait_for(10, sub {
		my $is = answer($t->post(uri($y), \$y->{bytes}));

		die "$is\n" unless $is =~ /^(?:200|503)/;
		$is =~ /^200/;
	}), 'and a retry succeeds');
}

ok(wait_for(5, sub { !$t->temp_files() }), 'no temporary files');
($want = $before) =~ s/^(\d+)/$1 + 4/e;
$want =~ s/( xorbs| gc_xorbs| charges) (\d+)/"$1 " . ($2 + 4)/eg;
is(all(), $want, 'four xorbs');

$t->done();
