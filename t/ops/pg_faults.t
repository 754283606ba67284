#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# PostgreSQL is down, slow, frozen, restarted, misconfigured or busy: responses
# in the meantime, and recovery without an operator.  No session or descriptor
# leaks.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience slurp spew /;

use POSIX ();
use Time::HiRes qw/ sleep time /;

my $t = Test::Xet->new(workers => 1);

$t->run();

# --------------------------------------------------------------------------
# files to request

my @files = map { $t->upload(random_bytes($_, 50000 + 1000 * $_),
	scheme => 'none') } 1 .. 8;
my $file = $files[0];
my $none = '0123456789abcdef' x 4;

sub uri {
	return "/api/v2/reconstructions/$_[0]{hash}";
}

my $plan = $t->reconstruct($file->{hash})->{plan};
my ($entry) = map { @$_ } values %{ $plan->{xorbs} };
my ($signed) = $entry->{url} =~ m!//[^/]+(/.*)!;
my $range = "bytes=$entry->{ranges}[0]{bytes}{start}-"
	. $entry->{ranges}[0]{bytes}{end};

# Checks that data requests work without PostgreSQL, and do not wait for it.

sub data_served {
	my ($name) = @_;

	my $r = $t->get($signed, { Range => $range });

	ok($r->{status} == 206 && $r->{body} eq $file->{xorbs}[0]{bytes}
		&& $r->{time} < patience(2), "$name: data are served")
		or diag("$r->{status} in $r->{time} s");
}

sub unavailable {
	my ($name, $r) = @_;

	my $json = $r->json();

	is_deeply([ $r->{status}, $r->{error},
		scalar $r->header_value('Retry-After'),
		scalar $r->header_value('Content-Type'),
		ref $json eq 'HASH' ? $json->{error}{code} : $r->{body} ],
		[ 503, undef, 5, 'application/json', 'database_unavailable' ],
		$name);
}

sub healthy {
	return $t->get('/api/v1/health')->{status} == 200;
}

sub recovers {
	my ($name, $seconds) = @_;

	my $start = time();
	my $good = wait_for($seconds || 8, sub { healthy()
		&& $t->get(uri($file))->{status} == 200 });

	ok($good, "$name: recovers by itself")
		or diag(substr($t->log(), -1000));

	my @bad = grep { $_->{status} != 200 }
		map { $t->get(uri($_)) } @files;

	is(scalar @bad, 0, "$name: good again");
}

sub writes {
	my ($name) = @_;

	my $new = eval { $t->upload(random_bytes(int(rand(1 << 30)), 20000),
		scheme => 'none') };

	is($new && $new->{result}, 1, "$name: uploads") or diag($@);
}

sub sessions {
	return scalar $t->sql("SELECT count(*) FROM pg_stat_activity"
		. " WHERE usename = 'xet'");
}

sub postgres {
	my ($params, %o) = @_;

	$t->write_conf(undef, directives => {
		xet_postgres => '"' . $t->conninfo() . "\" $params" }, %o);
	$t->reload();
}

sub ask {
	my ($uri, %o) = @_;

	return $t->http_start($o{method} || 'GET', $uri, $o{headers} || {},
		undef, close => 1, timeout => $o{timeout} || 20);
}

# --------------------------------------------------------------------------
# PostgreSQL is down when nginx starts

$t->stop();
$t->pg_stop();
$t->nginx()->run();

my $new = $t->upload(random_bytes(50, 30000), scheme => 'none', send => 0);
my $x = $new->{xorbs}[0];

for (1, 2) {
	unavailable("down at the start: $$_[0]", $t->http(@$_[1 .. 4]))
		for [ 'health', 'GET', '/api/v1/health' ],
		[ 'reconstruction', 'GET', uri($file) ],
		[ 'a range', 'GET', uri($file), { Range => 'bytes=5-9' } ],
		[ 'unknown file', 'GET', "/api/v1/reconstructions/$none" ],
		[ 'chunk', 'GET', "/api/v1/chunks/default/$none" ],
		[ 'xorb', 'POST', "/api/v1/xorbs/default/$x->{hash}", {},
			$x->{bytes} ],
		[ 'shard', 'POST', '/api/v1/shards', {}, $new->{shard} ];

	for my $path ("xorbs/default/$x->{hash}", "files/$file->{hash}") {
		my $r = $t->head("/api/v1/$path");

		is_deeply([ $r->{status}, scalar
			$r->header_value('Retry-After') ], [ 503, 5 ],
			"down at the start: HEAD $path");
	}

	data_served('down at the start');
}

is($t->get('/api/v1/reconstructions/' . '0' x 64)->{status}, 200,
	'trap 31: the empty file needs no PostgreSQL');
is($t->post("/api/v1/xorbs/default/$x->{hash}", 'nonsense')->{status}, 400,
	'a bad xorb is a bad xorb');
is($t->get('/api/v1/nothing')->{status}, 404, 'no route is no route');

my @lines = $t->log() =~ /(connecting to PostgreSQL failed: .*)/g;

cmp_ok(scalar @lines, '<=', 10, 'the log says it once a session');
ok(!(grep { !/socket.*No such file|refused/ } @lines), 'and why')
	or diag(join("\n", @lines));

$t->pg_start();
recovers('up');
writes('up');

is($t->upload(random_bytes(50, 30000), scheme => 'none')->{result}, 1,
	'the refused upload succeeds');
ok($t->wait_log(qr/reconnected to PostgreSQL/, 1), 'logged');

# --------------------------------------------------------------------------
# when statements of one pool work again, all pools work, although each pool has
# its own delay before it reconnects

for my $round (1 .. 3) {
	$t->pg_stop();
	sleep(6);
	$t->pg_start();

	ok(wait_for(20, sub { healthy() }), "round $round: healthy");

	my $again = $t->upload(random_bytes(60 + $round, 30000),
		scheme => 'none', send => 0);
	my ($y) = @{ $again->{xorbs} };

	is(join(' ', map { $t->http(@$_)->{status} }
		[ 'POST', "/api/v1/xorbs/default/$y->{hash}", {},
			$y->{bytes} ],
		[ 'POST', '/api/v1/shards', {}, $again->{shard} ],
		[ 'GET', uri($again) ],
		[ 'GET', "/api/v1/chunks/default/$none" ]),
		'200 200 200 404', "round $round: all of it");
}

# --------------------------------------------------------------------------
# restarts under load

sub load {
	my ($seconds) = @_;

	my @pids;

	for my $n (1 .. 3) {
		my $pid = fork();
		die "fork: $!\n" unless defined $pid;

		if ($pid) {
			push @pids, $pid;
			next;
		}

		my $name = $t->dir() . "/load.$n";
		my $end = time() + patience($seconds);
		my (%seen, $i);

		while (time() < $end) {
			my $f = $files[$i++ % @files];
			my $r = eval { $t->get(uri($f), {}, timeout => 20) };

			$seen{!$r ? "died: $@" : $r->{error} // ($r->{status}
				. ($r->{status} == 200 && index($r->{body},
				$f->{xorbs}[0]{hash}) < 0 ? ' wrong' : ''))}++;
		}

		spew($name, join("\n", map { "$seen{$_} $_" } keys %seen));
		POSIX::_exit(0);
	}

	return @pids;
}

sub loaded {
	my ($name, @pids) = @_;

	waitpid($_, 0) for @pids;

	my %seen;

	for my $file (glob($t->dir() . '/load.*')) {
		for (split(/\n/, slurp($file))) {
			/^(\d+) (.*)/ and $seen{$2} += $1;
		}
		unlink($file);
	}

	my $good = delete $seen{200} || 0;
	my $busy = delete $seen{503} || 0;

	is(join(' ', %seen), '', "$name: 200 or 503, nothing else");
	cmp_ok($good, '>', 20, "$name: $good good, $busy refused");
}

for my $mode (qw/ fast immediate /) {
	my @pids = load(1.5);

	sleep(0.4);
	$t->pg_restart($mode);
	loaded("$mode restart", @pids);
	recovers("$mode restart");
	writes("$mode restart");
}

# --------------------------------------------------------------------------
# terminated sessions

$t->get(uri($_)) for @files;
cmp_ok($t->pg_terminate(), '>=', 2, 'idle sessions terminated');
recovers('idle sessions terminated', 3);
writes('idle sessions terminated');

for (1, 2) {
	my @pids = load(0.8);

	for (1 .. 8) {
		$t->pg_terminate();
		sleep(0.05);
	}

	loaded('sessions terminated again and again', @pids);
	recovers('sessions terminated again and again');
}

my $lock = $t->pg_lock('xet.files');
my @busy = map { ask(uri($_)) } @files;

ok(wait_for(5, sub { $t->pg_blocked() }), 'busy sessions');
$t->pg_terminate();
ok(wait_for(5, sub { $t->pg_blocked() }), 'statements in flight are repeated');
$lock->unlock();

is(join(' ', map { $_->response()->{status} } @busy), join(' ', (200) x 8),
	'busy sessions terminated: nobody noticed');

$lock = $t->pg_lock('xet.files');
@busy = map { ask(uri($_)) } @files;
wait_for(5, sub { $t->pg_blocked() });

for (1 .. 2) {
	$t->pg_terminate();
	sleep(0.3);
}

$lock->unlock();
unlike(join(' ', map { my $r = $_->response(); $r->{error} // $r->{status} }
	@busy), qr/(?!200|503)\b\w+/, 'terminated twice: an answer for all');
recovers('terminated twice');

# --------------------------------------------------------------------------
# frozen

postgres('timeout=1s write_timeout=1s connect_timeout=1s reads=1 writes=1');
recovers('other settings');

sub timely {
	my ($name, $least, $most, $r) = @_;

	unavailable("$name: 503", $r);
	ok($r->{time} >= $least && $r->{time} <= patience($most),
		"$name: in time") or diag("$r->{time} s");
}

ok($t->pg_freeze(backends => 1), 'frozen sessions');

my $c = ask(uri($file));
data_served('frozen sessions');
timely('frozen sessions', 0.9, 2, $c->response());

# the module closes the session; PostgreSQL still runs and accepts a new session

recovers('a frozen session is replaced', 4);

# the health probe has replaced the frozen write session, too, so the test
# freezes the new sessions

ok($t->pg_freeze(backends => 1), 'frozen sessions, once more');

$c = ask("/api/v1/xorbs/default/$x->{hash}", method => 'POST',
	headers => { 'Content-Length' => length($x->{bytes}) });
$c->send($x->{bytes});
data_served('a frozen upload');
timely('a frozen upload', 0.9, 2.5, $c->response('POST'));

$t->pg_thaw();
recovers('thawed');
writes('thawed');

$t->pg_freeze();

my @asked = map { ask(uri($_)) } @files;

data_served('all frozen');
timely('all frozen', 0.9, 2, $_->response()) for @asked;

for (1 .. 3) {
	my $r = $t->get(uri($file));

	is($r->{status}, 503, 'still frozen');
	cmp_ok($r->{time}, '<', patience(2), 'still frozen: in time');
	data_served('still frozen');
}

$t->pg_thaw();
recovers('all thawed');
writes('all thawed');

# --------------------------------------------------------------------------
# locks

postgres('reads=1 depth=2 queue=1 writes=2');
recovers('a short queue');

my $shard = $t->upload(random_bytes(60, 40000), scheme => 'none', send => 0);
is($t->post("/api/v1/xorbs/default/$shard->{xorbs}[0]{hash}",
	\$shard->{xorbs}[0]{bytes})->{status}, 200, 'a xorb');

$lock = $t->pg_lock('xet.files', 'EXCLUSIVE');
$c = ask('/api/v1/shards', method => 'POST',
	headers => { 'Content-Length' => length($shard->{shard}) });
$c->send($shard->{shard});

ok(wait_for(5, sub { $t->pg_blocked() }), 'a shard that waits');
is(join(' ', map { $t->get(uri($_))->{status} } @files),
	join(' ', (200) x 8), 'reads continue meanwhile');
is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})->{status},
	200, 'and other writes');
data_served('a shard that waits');
is($t->get(uri($shard))->{status}, 404, 'the file is not there yet');
$lock->unlock();
is($c->response('POST')->{body}, '{"result":1}', 'the shard is accepted');
is($t->get(uri($shard))->{status}, 200, 'and the file is there');

# the queue is full: two statements in flight, one waits

$lock = $t->pg_lock('xet.files');
@asked = map { my $c = ask(uri($_)); sleep(0.05); $c } @files[0 .. 2];
ok(wait_for(5, sub { $t->pg_blocked() }), 'a full queue');

for (1 .. 3) {
	my $r = $t->get(uri($file));

	unavailable('one too many', $r);
	cmp_ok($r->{time}, '<', patience(2), 'at once');
}

data_served('a full queue');
$lock->unlock();
is(join(' ', map { $_->response()->{status} } @asked), '200 200 200',
	'the others are served');
recovers('a full queue');

# --------------------------------------------------------------------------
# clients that disconnect

postgres('reads=1 depth=4 writes=1');
recovers('a reload');
writes('a reload');

my @backends = $t->pg_backends();
my $keep = $t->connect();

$keep->exchange('GET', '/api/v1/health');
$t->fds_mark();

my $before = () = slurp($t->dir() . '/access.log') =~ / 499 /g;

for my $round (1 .. 3) {
	$lock = $t->pg_lock('xet.files');
	@asked = map { ask(uri($_)) } @files, @files;

	my $s = ask('/api/v1/shards', method => 'POST',
		headers => { 'Content-Length' => length($shard->{shard}) });
	$s->send($shard->{shard});

	wait_for(5, sub { $t->pg_blocked() >= 2 });
	$_->abort() for @asked[0 .. 11];
	$_->close() for @asked[12 .. 15];
	$round % 2 ? $s->abort() : $s->close();

	ok(wait_for(5, sub { (() = slurp($t->dir() . '/access.log')
		=~ / 499 /g) >= $before + 16 * $round }),
		'clients that leave are noticed');
	$lock->unlock();

	is(join(' ', map { $t->get(uri($_))->{status} } @files),
		join(' ', (200) x 8), 'their answers get into nobody\'s way');
}

is(join(' ', $t->pg_backends()), "@backends", 'the sessions are the same');
is($keep->exchange('GET', '/api/v1/health')->{status}, 200,
	'a connection that stayed');
$keep->close();
$t->check_fds();

# --------------------------------------------------------------------------
# many concurrent requests: every response belongs to its own request

for my $params ('reads=1 depth=2', 'reads=2', 'reads=3 depth=1') {
	postgres($params);

	# each row: status, text that only the right response has, URI, headers

	my @want;

	for my $i (0 .. 39) {
		my $f = $files[$i % @files];
		my $xorb = $f->{xorbs}[0];

		push @want, $i % 5 == 3
			? [ 404, 'file_not_found', '/api/v2/reconstructions/'
				. sprintf('%064x', $i + 1) ]
			: $i % 5 == 4
			? [ 200, raw_hash($xorb->{hash}),
				"/api/v1/chunks/default/"
				. $xorb->{chunks}[0]{hash} ]
			: [ 200, "\"hash\":\"$xorb->{hash}\"", uri($f),
				{ Range => 'bytes=' . ($i % 7) . '-' } ];
	}

	my @c = map { ask($_->[2], headers => $_->[3]) } @want;
	my $wrong = 0;

	for my $i (0 .. $#want) {
		my $r = $c[$i]->response();

		$wrong++ if $r->{status} != $want[$i][0]
			|| index($r->{body}, $want[$i][1]) < 0;
	}

	is($wrong, 0, "40 at once: $params");
}

# --------------------------------------------------------------------------
# concurrent reads share a sync, and so a transaction: when one fails, all other
# requests get their responses

my $terms = join("\n", $t->sql('SELECT pg_get_functiondef('
	. "'xet.file_terms'::regproc)"));
my $fails = $terms =~ s/(WHEN file_terms\.repo IS NULL)/
	WHEN file_terms.file = (SELECT x.hash FROM xet.files x
		WHERE x.size = 53000)
	THEN 1 \/ (length(file_terms.file) - 32) > 0 $1/r;

isnt($fails, $terms, 'a statement that fails for one file');
$t->sql($fails);

my ($sender) = $t->worker_pids();
my @open = map { $t->connect() } @files;
for (1 .. 3) {
	kill('STOP', $sender);
	$open[$_]->start('GET', uri($files[$_])) for 0 .. $#files;
	kill('CONT', $sender);

	is_deeply([ map { $_->response('GET')->{status} } @open ],
		[ map { $_ == 2 ? 500 : 200 } 0 .. $#files ],
		"one read of many fails, $_");
}

$t->sql($terms);
is($t->get(uri($files[2]))->{status}, 200, 'the statement works again');

# --------------------------------------------------------------------------
# large results

my @wide = map { make_xorb(random_bytes(70 + $_, 8192 * 16), sizes => [ 16 ],
	scheme => 'none') } 0 .. 2;

is(join(' ', map { $t->post("/api/v1/xorbs/default/$_->{hash}",
	\$_->{bytes})->{status} } @wide), '200 200 200', 'full xorbs');

my @large = map { my $n = $_; make_shard({ files => [ { terms => [ map { {
	xorb => $_->{hash}, start => $n, end => 8192
} } @wide[$n .. 2] ] } ], xorbs => \@wide }) } 0, 1;

for my $params ('reads=1 writes=1', 'reads=2 writes=4') {
	postgres($params);

	my @c = map {
		my $c = ask('/api/v1/shards', method => 'POST', timeout => 30,
			headers => { 'Content-Length' => length($_->{bytes}) });
		$c->send($_->{bytes});
		$c
	} @large;

	is(join(' ', map { $_->response('POST')->{status} } @c),
		'200 200', "$params: shards with slices of 1.2 MB");

	my $chunk = $wide[0]{chunks}[0]{hash};
	@c = map { ask("/api/v1/chunks/default/$chunk") } 1 .. 10;

	is(join(' ', map { my $r = $_->response(); $r->{status} . ':'
		. length($r->{body}) } @c),
		join(' ', ('200:' . (48 * (3 + 3 * 8193) + 200)) x 10),
		"$params: 10 times 3 lists of 8,192 chunks");

	@c = map { ask("/api/v2/reconstructions/$large[0]{files}[0]{hash}",
		headers => { Range => "bytes=$_-" . ($_ + 70000) } ) }
		map { 7 + 50000 * $_ } 0 .. 6;

	is(join(' ', map { $_->response()->{status} } @c),
		join(' ', (200) x 7), "$params: slices for edges");
}

# --------------------------------------------------------------------------
# the number of sessions is limited

postgres('reads=2 writes=3', workers => 2);

my $most = 0;

for (1 .. 4) {
	my @c = map { ask(uri($files[$_ % @files])) } 1 .. 60;

	push @c, map {
		my $c = ask('/api/v1/shards', method => 'POST', headers => {
			'Content-Length' => length($_->{shard}) });
		$c->send($_->{shard});
		$c
	} @files, @files;

	my $n = sessions();
	$most = $n if $n > $most;

	is((grep { $_->response()->{status} != 200 } @c) + 0, 0,
		'76 at once by two workers');
}

wait_for(5, sub { scalar($t->worker_pids(all => 1)) == 2 });
cmp_ok(sessions(), '<=', 10, 'sessions of two workers');
cmp_ok(sessions(), '>=', 4, 'and they stay');
is($t->sql("SELECT DISTINCT application_name FROM pg_stat_activity"
	. " WHERE usename = 'xet'"), 'nginx-xet', 'name of the sessions');

# PostgreSQL allows fewer sessions than configured

$t->sql('ALTER ROLE xet CONNECTION LIMIT 2');
postgres('reads=2 writes=3', workers => 1);
ok(wait_for(8, sub { healthy() }), 'two sessions are enough to read');
is(join(' ', map { $t->get(uri($_))->{status} } @files),
	join(' ', (200) x 8), 'two sessions: reads');

# A ping must not occupy the session that reads need: if reads have no session,
# the ping's session is closed.  A server that cannot read is unhealthy.

$t->sql('ALTER ROLE xet CONNECTION LIMIT -1');
postgres('reads=1 writes=1', workers => 1);
ok(wait_for(8, sub { sessions() == 2 }), 'a session for reads, one for writes');

$lock = $t->pg_lock('xet.files');
$c = ask(uri($file));
ok(wait_for(5, sub { $t->pg_blocked() }), 'a read that waits');
ok(healthy() && sessions() == 3, 'and one more for a ping');
$lock->unlock();
is($c->response()->{status}, 200, 'the read has waited');

$t->sql('ALTER ROLE xet CONNECTION LIMIT 2');
$t->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
	. " WHERE usename = 'xet' AND backend_start < (SELECT"
	. " max(backend_start) FROM pg_stat_activity WHERE usename = 'xet')");
recovers('two of three sessions');
ok(wait_for(8, sub {
	$t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})->{status}
		== 200 }), 'two of three sessions: writes, too');

postgres('reads=2 writes=3', workers => 1);
recovers('two sessions, and more wanted');

$t->sql('ALTER ROLE xet CONNECTION LIMIT 0');
$t->pg_terminate();
ok(wait_for(5, sub { !healthy() }), 'no session at all');
unavailable('no session at all', $t->get(uri($file)));
$t->sql('ALTER ROLE xet CONNECTION LIMIT -1');
recovers('sessions again');
writes('sessions again');

# read-only sessions, as if xet_postgres named a standby

$t->sql('ALTER ROLE xet SET default_transaction_read_only = on');
$t->pg_terminate();
recovers('read only');
unavailable('read only: an upload', $t->post(
	'/api/v1/xorbs/default/' . $wide[0]{hash}, \$wide[0]{bytes}));
$t->sql('ALTER ROLE xet RESET default_transaction_read_only');
$t->pg_terminate();
recovers('read and write');
writes('read and write');

# --------------------------------------------------------------------------
# another schema version

my $from = $t->log_size();

$t->sql("INSERT INTO xet.migrations (version, name) VALUES (999, 'later')");
$t->reload();
unavailable('another schema version', $t->get('/api/v1/health'));
unavailable('another schema version, again', $t->get(uri($file)));

my $wrong = 'the schema "xet" has another version than this module needs;'
	. ' run xet migrate';

ok($t->wait_log(qr/\[error\].*\Q$wrong\E/, 5, $from),
	'the log says what to do');
data_served('another schema version');
$t->sql('DELETE FROM xet.migrations WHERE version = 999');
recovers('the right schema');

$from = $t->log_size();
$t->sql('ALTER SCHEMA xet RENAME TO gone');
$t->reload();
unavailable('no schema', $t->get('/api/v1/health'));
ok($t->wait_log(qr/connecting to PostgreSQL failed:.*xet\.migrations/, 5,
	$from), 'the log says what is missing');
$t->sql('ALTER SCHEMA gone RENAME TO xet');
recovers('a schema again');

# --------------------------------------------------------------------------
# reloads and exits

sub old_gone {
	my ($name, @old) = @_;

	my %old = map { $_ => 1 } @old;

	ok(wait_for(8, sub { !grep { $old{$_} }
		$t->worker_pids(all => 1) }), "$name: the old worker ends");
}

my @old = $t->reload();
old_gone('idle', @old);

$lock = $t->pg_lock('xet.files', 'EXCLUSIVE');

my $waiting = $t->upload(random_bytes(80, 40000), scheme => 'none',
	send => 0);
$t->post("/api/v1/xorbs/default/$waiting->{xorbs}[0]{hash}",
	\$waiting->{xorbs}[0]{bytes});

sub send_shard {
	my $c = ask('/api/v1/shards', method => 'POST', headers => {
		'Content-Length' => length($waiting->{shard}) });
	$c->send($waiting->{shard});
	wait_for(5, sub { $t->pg_blocked() });

	return $c;
}

$c = send_shard();
@old = $t->reload();
is($t->get(uri($file))->{status}, 200, 'reload: the new worker serves');
ok((grep { my $pid = $_; grep { $_ == $pid } @old }
	$t->worker_pids(all => 1)), 'reload: the old one is busy');
$lock->unlock();
is($c->response('POST')->{body}, '{"result":1}', 'reload: and finishes');
$c->close();
old_gone('reload', @old);
ok(wait_for(5, sub { sessions() <= 5 }), 'reload: its sessions are gone');

# QUIT with a statement in flight

$lock = $t->pg_lock('xet.files', 'EXCLUSIVE');
$c = send_shard();
kill('QUIT', $t->nginx()->pid());
sleep(0.3);
$lock->unlock();
is($c->response('POST')->{status}, 200, 'QUIT: the request is finished');
$c->close();
ok($t->stop(), 'QUIT: exit');
ok(wait_for(5, sub { sessions() == 0 }), 'QUIT: no session is left');

# with worker_shutdown_timeout, and a statement that does not end

$t->write_conf(undef, main => 'worker_shutdown_timeout 1s;');
$t->run();
recovers('started again');

$lock = $t->pg_lock('xet.files');
@asked = map { ask(uri($_)) } @files;
$c = send_shard();
wait_for(5, sub { $t->pg_blocked() >= 2 });

my $start = time();

kill('QUIT', $t->nginx()->pid());
$_->response() for @asked;
$c->response('POST');
ok($t->stop(timeout => 10), 'worker_shutdown_timeout: exit');
cmp_ok(time() - $start, '<', patience(4), 'worker_shutdown_timeout: in time');
$lock->unlock();
ok(wait_for(5, sub { sessions() == 0 }),
	'worker_shutdown_timeout: no session is left');

# TERM and QUIT while PostgreSQL is completely frozen

$t->write_conf(undef, main => '');

for my $signal (qw/ TERM QUIT /) {
	$t->run();
	recovers("before $signal");
	$t->pg_freeze();
	@asked = $signal eq 'TERM' ? map { ask(uri($_)) } @files : ();
	sleep(0.1);
	ok($t->stop(signal => $signal, timeout => 10),
		"$signal with all frozen");
	$t->pg_thaw();
}

$t->done();
