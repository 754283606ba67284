#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Metrics across reloads, killed workers and a binary upgrade: no count is lost,
# repeated or decreased, and requests that have ended are not shown as in
# progress.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ children cmdline run_command slurp spew /;

use POSIX ();
use Time::HiRes qw/ sleep time /;

my $t = Test::Xet->new(log => 'info', workers => 1, locations => <<'EOC');
xet_auth off;
location /api/ { xet_api; client_max_body_size 80m; }
location = /metrics { xet_metrics; }
EOC

my $live = 'xet_requests_total{route="live",class="2xx"}';

$t->run();

# Starts a process that sends requests until it is stopped, and then reports the
# number of responses.

sub load {
	my ($name) = @_;

	my $stop = $t->dir() . "/$name.stop";
	my $parent = $$;
	my $pid = fork() // die $!;

	return { pid => $pid, stop => $stop, n => "$stop.n" } if $pid;

	my $n = 0;

	while (!-e $stop && getppid() == $parent) {
		my $r = eval { $t->get('/api/health/live') };

		$n++ if $r && $r->{status} eq '200';
	}

	spew("$stop.n", $n);
	POSIX::_exit(0);
}

sub answers {
	my $n = 0;

	spew($_->{stop}, '') for @_;

	for my $load (@_) {
		waitpid($load->{pid}, 0);
		$n += slurp($load->{n});
	}

	return $n;
}

# Returns the counters that have decreased since the last call.

my $last;

sub onward {
	my $now = metrics($t);
	my @back;

	if ($last) {
		@back = grep { /_(?:total|bucket|count|sum)(?:\{|$)/
			&& $now->{$_} < $last->{$_} } sort keys %$last;
	}

	$last = $now;

	return map { "$_ is $now->{$_}" } @back;
}

# --------------------------------------------------------------------------
# reloads under load that change the number of workers: the counts are exact

my $before = metrics($t)->{$live};
my @load = map { load("reload$_") } 1 .. 3;
my @back;

for my $workers (4, 2, 1, 3, 1) {
	$t->write_conf(undef, workers => $workers);
	$t->reload();

	push @back, onward() for 1 .. 20;

	ok(wait_for(20, sub {
		push @back, onward();
		return $last->{xet_workers} == $workers;
	}), "$workers workers, and those of before are gone");
}

my $n = answers(@load);
my $got;

cmp_ok($n, '>', 100, 'reloads: there was something to count');
wait_for(20, sub { ($got = metrics($t)->{$live} - $before) == $n });
is($got, $n, 'reloads: each answer is counted once');
is("@back", '', 'reloads: nothing goes back');

# --------------------------------------------------------------------------
# an upload in a worker that was started before a reload

{
	my $c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => 1000 }, 'x' x 400);

	ok(wait_for(20, sub { metrics($t)->{xet_uploads_in_flight} == 1 }),
		'an upload');

	$t->write_conf(undef, workers => 4);
	$t->reload();

	my $m = metrics($t);

	is($m->{xet_workers}, 5, 'a reload: four and one');
	is($m->{xet_uploads_in_flight}, 1, 'a reload: the upload continues');

	my $bytes = $m->{xet_registered_bytes_total};

	$c->send('x' x 600);
	is($c->response('PUT')->{status}, 200, 'a reload: it ends');
	$c->close();

	ok(wait_for(20, sub { metrics($t)->{xet_workers} == 4 }),
		'a reload: the old worker leaves');

	$m = metrics($t);
	is($m->{xet_registered_bytes_total} - $bytes, 1000,
		'a reload: its counts stay');
	is($m->{xet_uploads_in_flight}, 0, 'a reload: no upload any more');
	push @back, onward();
}

# --------------------------------------------------------------------------
# workers are killed under load: each response is counted, unless its worker is
# killed between the response and the count

{
	my $kills = 5;

	my $c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => 1000 }, 'x' x 400);

	ok(wait_for(20, sub { metrics($t)->{xet_uploads_in_flight} == 1 }),
		'kill: an upload');

	$before = metrics($t)->{$live};
	@load = map { load("kill$_") } 1 .. 3;

	for (1 .. $kills) {
		sleep(0.2);

		for my $pid ($t->worker_pids()) {
			$t->kill_worker('KILL', $pid);
			push @back, onward() for 1 .. 5;
		}
	}

	$n = answers(@load);
	$got = metrics($t)->{$live} - $before;

	cmp_ok(abs($got - $n), '<=', $kills * 4 * 3, 'kill: nothing is lost')
		or diag("$got counted, $n answered");

	is(metrics($t)->{xet_uploads_in_flight}, 0,
		'kill: the upload is not in flight');
	is(metrics($t)->{xet_workers}, 4, 'kill: as many as there are');
	$c->close();
	push @back, onward();
}

is("@back", '', 'nothing has gone back');

# an old worker, which finishes an upload after a reload, is killed: the master
# does not replace it

{
	my $c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => 1000 }, 'x' x 400);

	ok(wait_for(20, sub { metrics($t)->{xet_uploads_in_flight} == 1 }),
		'an old worker: an upload');

	my @old = $t->reload();

	push @{ $t->nginx()->{allow} },
		map { qr/worker process $_ exited on signal/ } @old;
	wait_for(20, sub { metrics($t)->{xet_workers} == 5 });
	kill('KILL', @old);

	ok(wait_for(20, sub {
		my $m = metrics($t);
		return $m->{xet_uploads_in_flight} == 0
			&& $m->{xet_workers} == 4;
	}), 'an old worker is killed: nothing of it is under way');
	$c->close();
}

# --------------------------------------------------------------------------
# a failed reload, and a worker that is started after it

{
	$before = metrics($t);

	my $conf = $t->nginx()->{conf};

	spew($t->dir() . '/nginx.conf', "$conf\nnonsense;\n");
	$t->allow(qr/unknown directive "nonsense"/);

	my $from = $t->log_size();

	kill('HUP', $t->nginx()->pid());
	ok($t->wait_log(qr/unknown directive "nonsense"/, 20, $from),
		'a reload that fails');
	$t->kill_worker('KILL', $_) for $t->worker_pids();
	$t->get('/api/health/live');

	is_deeply([ onward() ], [], 'a reload that fails: nothing goes back');
	spew($t->dir() . '/nginx.conf', $conf);
}

# --------------------------------------------------------------------------
# metrics are disabled for a while: earlier counts are lost, and the start time
# shows this

{
	my $o = $t->{o}{locations};

	$t->write_conf(undef, locations => 'xet_auth off;'
		. ' location /api/ { xet_api; }');
	$t->reload();
	is($t->get('/api/health/live')->{status}, 200, 'without metrics');
	is($t->get('/metrics')->{status}, 404, 'without metrics: none');
	$t->write_conf(undef, locations => $o);
	$t->reload();

	my $m = metrics($t);

	cmp_ok($m->{xet_start_time_seconds}, '>',
		$before->{xet_start_time_seconds}, 'another beginning');
	is($m->{$live}, 0, 'from zero');
}

# --------------------------------------------------------------------------
# a binary upgrade, and back: each master reports its own counts.  nginx runs as
# a daemon here, because a master ignores the upgrade signal while its parent is
# the process that started it.

$t->nginx()->stop();

{
	my $dir = $t->dir();
	my $file = "$dir/nginx.pid";
	my $conf = $t->nginx()->{conf} =~ s/daemon off;/daemon on;/r;

	spew("$dir/nginx.conf", $conf);

	my ($status, $out) = run_command([ $t->nginx()->args() ], env => {});

	is($status, 0, 'a daemon') or diag($out);

	my $pid = sub { return (slurp($file, 1) // '') =~ /^(\d+)$/ ? $1 : 0 };
	my $workers = sub { return scalar grep {
		cmdline($_) =~ /^nginx: worker process$/ } children($_[0]) };

	ok(wait_for(20, sub { $pid->() && $workers->($pid->()) == 4 }),
		'a daemon: its workers');

	my $master = $pid->();

	$t->get('/api/health/live') for 1 .. 10;
	wait_for(20, sub { metrics($t)->{$live} == 10 });

	my $old = metrics($t);

	kill('USR2', $master);
	ok(wait_for(20, sub { -e "$file.oldbin" && $pid->()
		&& $pid->() != $master && $workers->($pid->()) == 4 }),
		'another binary');

	my $next = $pid->();

	kill('WINCH', $master);
	ok(wait_for(20, sub { !$workers->($master) }),
		'the old workers leave');

	my $m = metrics($t);

	is($m->{xet_workers}, 4, 'the new workers');
	is($m->{$live}, 0, 'the new ones count from zero');
	cmp_ok($m->{xet_start_time_seconds}, '>',
		$old->{xet_start_time_seconds}, 'and say since when');

	kill('HUP', $master);
	ok(wait_for(20, sub { $workers->($master) == 4 }),
		'the old one again');
	kill('QUIT', $next);
	ok(wait_for(20, sub { !-e "$file.oldbin" && $pid->() == $master }),
		'the new one leaves');

	$m = metrics($t);
	is($m->{xet_start_time_seconds}, $old->{xet_start_time_seconds},
		'the old one: the same beginning');
	is($m->{$live}, 10, 'the old one: the same counts');

	kill('QUIT', $master);
	ok(wait_for(20, sub { !-e $file }), 'the end');
}

$t->done();
