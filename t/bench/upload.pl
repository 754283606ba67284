#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures an upload of a 64 MiB xorb: CPU time, throughput, memory, and how
# long the event loop is blocked.  The CPU time is compared with the core, which
# verifies the same bytes in memory, and with nginx's dav module, which stores
# the same bytes.
#
#     perl t/bench/upload.pl
#
# Needs "make build tools cli bench-bins".  Takes two minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Errno qw/ EAGAIN EINTR EWOULDBLOCK /;
use File::Temp qw/ tempdir /;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Socket qw/ IPPROTO_TCP TCP_NODELAY /;
use Time::HiRes qw/ sleep time /;

use Test::Xet::Process qw/ build_dir slurp /;

my @kinds = ([ 'stored', 'random, stored' ], [ 'lz4', 'text, LZ4' ],
	[ 'bg4', 'bf16, BG4+LZ4' ]);
my $verify = build_dir() . '/bench/bench_xorb_verify';
my $buffer = 262144;
my $repeats = repeats(5);
my $clients = choose(32, 4);

die "no $verify: run make bench-bins first\n" unless -x $verify;

bench_start('upload: xorbs of 64 MiB, one worker');

my $dir = tempdir('xbodies-XXXXXX', CLEANUP => 1,
	-d '/dev/shm' ? (DIR => '/dev/shm') : (TMPDIR => 1));

system("$verify $buffer 1 $dir > /dev/null") == 0 or die "$verify: $?\n";

my %bodies;

for my $file (glob("$dir/*")) {
	my ($kind, $hash) = $file =~ m!/(\w+)\.(\w+)$! or die $file;

	$bodies{$kind} = {
		file => $file, uri => "/api/v1/xorbs/default/$hash",
		dav => "/dav/$hash", data => \slurp($file)
	};
}

my $t = server('tmpfs');
my ($worker) = $t->worker_pids();

against_limits();

unless (bench_quick()) {
	memory_held();
	event_loop();

	bench_end($t);
	$t = server('disk');
	($worker) = $t->worker_pids();

	on_disk();
}

bench_end($t);

# --------------------------------------------------------------------------

sub server {
	my ($where) = @_;

	return bench_dav_server('80m', store => $where,
		directives => { xet_xorb_max_size => '80m' },
		server => 'location = /204 { return 204; }');
}

# Returns the CPU and wall milliseconds of one upload.

sub upload {
	my ($kind, $what) = @_;

	my ($body, $method) = ($bodies{$kind}, 'POST');
	my $uri = $body->{uri};

	if ($what eq 'dav') {
		($uri, $method) = ($body->{dav}, 'PUT');
		unlink($t->store() . $uri);

	} else {
		bench_reset($t);
	}

	my $cpu = cpu_us($worker);
	my $wall = time();

	send_all([ [ $method, $uri, $body->{data} ] ]);

	$wall = time() - $wall;

	return ((cpu_us($worker) - $cpu) / 1000, $wall * 1000);
}

sub verify {
	my ($kind) = @_;

	my $cpu = server_cpu();
	my $out = `taskset -c $cpu $verify $buffer 3 $bodies{$kind}{file}`;

	my @fields = split(' ', (split(/\n/, $out))[-1]);

	return $fields[5];
}

# Each repetition measures all three cases, so that other load of the machine
# affects all cases.

sub measure {
	my ($kind) = @_;

	my %m;
	my $size = length(${ $bodies{$kind}{data} });

	for (bench_short() .. $repeats) {
		my ($cpu, $wall) = upload($kind, 'xet');
		my ($dav_cpu, $dav_wall) = upload($kind, 'dav');
		my $core = verify($kind);

		next if $_ == 0;

		push @{ $m{cpu} }, $cpu;
		push @{ $m{dav_cpu} }, $dav_cpu;
		push @{ $m{core} }, $core;
		push @{ $m{by_core} }, $cpu / $core;
		push @{ $m{by_dav} }, $cpu / $dav_cpu;
		push @{ $m{by_both} }, $cpu / ($core + $dav_cpu);
		push @{ $m{rate} }, $size / 1e3 / $wall;
		push @{ $m{dav_rate} }, $size / 1e3 / $dav_wall;
	}

	return \%m;
}

sub against_limits {
	my @ratios = [ 'CPU of an upload against', 'verify', 'dav PUT',
		'both together' ];
	my @rows = [ 'CPU ms a xorb', 'upload', 'verify alone', 'dav PUT' ];
	my @wall = [ 'one client, MB/s', 'upload', 'dav PUT' ];

	for (@kinds) {
		my ($kind, $name) = @$_;
		my $m = measure($kind);

		push @ratios, [ $name, map { spread(@{ $m->{$_} }) }
			qw/ by_core by_dav by_both / ];
		push @rows, [ $name, map { spread(@{ $m->{$_} }) }
			qw/ cpu core dav_cpu / ];
		push @wall, [ $name, map { spread(@{ $m->{$_} }) }
			qw/ rate dav_rate / ];
		bench_row("POST xorb, $name", $m->{cpu}, 'ms CPU',
			'verify + dav PUT', $m->{by_both}, 1.15, 'less');
	}

	bench_heading("store on tmpfs, $repeats repetitions");
	bench_table(@ratios);
	print "\n";
	bench_table(@rows);
	print "\n";
	bench_table(@wall);

	return if bench_quick();

	my @many = [ "$clients clients, MB/s", 'upload', 'dav PUT' ];

	for (@kinds[0, 1]) {
		my ($kind, $name) = @$_;
		my $body = $bodies{$kind};
		my (@xet, @dav);

		for (1 .. choose(5, 1)) {
			bench_reset($t);
			push @xet, many('POST', $body->{uri}, $body);
			push @dav, many('PUT', $body->{dav}, $body);
		}

		push @many, [ $name, spread(@xet), spread(@dav) ];
	}

	print "\n";
	bench_table(@many);
}

sub many {
	my ($method, $uri, $body) = @_;

	my $wall = time();

	send_all([ map { [ $method, $uri, $body->{data} ] } 1 .. $clients ]);

	return $clients * length(${ $body->{data} }) / 1e6 / (time() - $wall);
}

# A throttled disk would dominate this result, so the cost of writing the same
# bytes without the module is printed, too.

sub on_disk {
	my (@cpu, @rate, @dav, @plain);
	my $body = $bodies{stored};
	my $size = length(${ $body->{data} });
	my $file = $t->store() . '/plain';

	for (1 .. $repeats) {
		my ($cpu, $wall) = upload('stored', 'xet');

		push @cpu, $cpu;
		push @rate, $size / 1e3 / $wall;

		($cpu, $wall) = upload('stored', 'dav');
		push @dav, $size / 1e3 / $wall;

		my $start = time();
		system('dd', "if=$body->{file}", "of=$file", 'bs=256k',
			'conv=fdatasync', 'status=none') == 0 or die "dd: $?\n";
		push @plain, $size / 1e6 / (time() - $start);

		unlink($file);
	}

	bench_heading("store on disk, $repeats uploads, random, stored");
	bench_table(
		[ 'MB/s', 'upload (durable)', 'dd, fdatasync',
			'dav PUT (not durable)' ],
		[ 'one after another', spread(@rate), spread(@plain),
			spread(@dav) ]);
	print "upload: ", spread(@cpu), " ms of CPU\n";
}

# --------------------------------------------------------------------------
# memory

sub fresh {
	$t->reload();
	($worker) = $t->worker_pids();
	$t->get('/204');
	sleep(0.3);
	memory_reset($worker);

	return (memory($worker))[0];
}

sub memory_row {
	my ($name, $n, $idle) = @_;

	my ($now, $most) = memory($worker);

	return [ $name, map({ sprintf('%.1f', $_ / 1024) } $now, $most),
		$n ? int(($most - $idle) / $n) : '' ];
}

sub memory_held {
	my @rows = [ 'worker, MiB', 'resident', 'at most', 'KiB an upload' ];
	my $body = $bodies{lz4};
	my $size = length(${ $body->{data} });
	my $half = substr(${ $body->{data} }, 0, $size / 2);
	my $idle;

	for my $n (1, $clients) {
		$idle = fresh();
		push @rows, memory_row('idle') if $n == 1;

		my @held = map {
			$t->http_start('POST', $body->{uri},
				{ 'Content-Length' => $size }, $half,
				timeout => 60);
		} 1 .. $n;

		sleep(choose(0.5, 0.1));
		push @rows, memory_row("$n held half-way", $n, $idle);
		$_->abort() for @held;
		sleep(choose(1, 0.1));
		push @rows, memory_row("$n gone again");
	}

	for ([ 'running', 'POST', $body->{uri} ],
		[ 'PUTs of dav running', 'PUT', $body->{dav} ])
	{
		my ($name, $method, $uri) = @$_;

		$idle = fresh();
		bench_reset($t);
		send_all([ map { [ $method, $uri, $body->{data} ] }
			1 .. $clients ]);
		push @rows, memory_row("$clients $name, then gone", $clients,
			$idle);
	}

	bench_heading('memory, text, LZ4');
	bench_table(@rows);
}

# --------------------------------------------------------------------------
# the event loop

# Every millisecond, a probe requests a constant response.  It waits while the
# loop is blocked, and while the verifying threads use the loop's processor.  To
# find the loop's part, each probe reads from /proc the CPU time of the loop's
# thread and how often it has slept.  A turn of the loop ends with a sleep.  The
# CPU time from the last probe before a turn to the first probe after it is an
# upper bound for the turn.  perf, if available, measures turns exactly.

sub event_loop {
	my $body = $bodies{lz4};
	my @rows = [ 'a request each ms, us', 'n', 'p50', 'p99', 'max',
		'loop at most', 'waits for CPU' ];
	my @turns = [ 'turns of the loop, CPU us', 'n', 'p50', 'p99',
		'p99.9', 'max' ];

	for (
		[ 'idle' ],
		[ '1 upload, then the next', 1, 'POST', $body->{uri} ],
		[ "$clients uploads, then the next", $clients, 'POST',
			$body->{uri} ],
		[ "$clients, xet_thread_nice 10", $clients, 'POST',
			$body->{uri}, 10 ],
		[ "$clients PUTs of dav, likewise", $clients, 'PUT',
			$body->{dav} ]
	) {
		my ($name, $n, $method, $uri, $nice) = @$_;
		my $pid;

		$t->write_conf(undef, directives => {
			xet_xorb_max_size => '80m',
			xet_thread_nice => $nice || 0
		});
		fresh();

		if ($n) {
			$pid = fork() // die "fork: $!\n";

			if ($pid == 0) {
				repeat($n, $method, $uri, $body->{data});
				POSIX::_exit(0);
			}

			sleep(choose(1, 0.1));
		}

		my $p = probe(choose($n ? 5 : 2, 0.2));
		my @turn = bench_short() ? () : turns();

		if ($pid) {
			kill('TERM', $pid);
			waitpid($pid, 0);
			sleep(choose(1, 0.1));
		}

		my @t = sort { $a <=> $b } @{ $p->{times} };

		push @rows, [ $name, scalar @t,
			map({ sprintf('%.0f', 1e6 * $_) } $t[$#t * 0.5],
				$t[$#t * 0.99], $t[-1]),
			sprintf('%.0f', $p->{burst} / 1000),
			sprintf('%.0f %%', $p->{waited} * 100) ];
		push @turns, [ $name, scalar @turn,
			map { sprintf('%.0f', $_) } @turn[$#turn * 0.5,
				$#turn * 0.99, $#turn * 0.999, $#turn] ]
			if @turn;
	}

	bench_heading('the event loop, text, LZ4');
	bench_table(@rows);
	print "\n";
	bench_table(@turns);
}

sub probe {
	my ($seconds) = @_;

	my $c = connected();
	my $fifo = system("chrt -f -p 10 $$ 2>/dev/null") == 0;
	my $request = "GET /204 HTTP/1.1\r\nHost: localhost\r\n\r\n";
	my (@times, $answer);

	my $begin = time();
	my $next = $begin;
	my ($burst, $longest) = (0, 0);
	my @last = loop_times();
	my @first = @last;

	while ($next < $begin + $seconds) {
		my $start = time();

		syswrite($c, $request);
		sysread($c, $answer, 4096) or die "no answer: $!\n";

		push @times, time() - $start;

		die "answer $answer\n" unless $answer =~ m!^HTTP/1.1 204!;

		my @now = loop_times();

		$burst += $now[0] - $last[0];
		$longest = $burst if $burst > $longest;
		$burst = $now[0] - $last[0] if $now[2] != $last[2];
		@last = @now;

		$next += 0.001 while $next < time();
		my $left = $next - time();
		sleep($left) if $left > 0;
	}

	system("chrt -o -p 0 $$") if $fifo;

	return {
		times => \@times, burst => $longest,
		waited => ($last[1] - $first[1]) / 1e9 / (time() - $begin)
	};
}

# Returns the CPU time of each turn of the loop, sorted.  A turn lasts from the
# return of one epoll_wait() to the call of the next one.

sub turns {
	my $data = "$dir/perf.data";
	my $calls = join(',', map { "syscalls:sys_${_}_epoll_wait" }
		qw/ enter exit /);

	system("perf record -q -e $calls --switch-events -t $worker -o $data"
		. ' -- sleep 3 > /dev/null 2>&1') == 0 or return;

	my ($begin, $off, $since, @turns);

	for (`perf script --show-switch-events --ns -F comm,tid,time,event \\
		-i $data 2> /dev/null`)
	{
		my ($time) = /\s(\d+\.\d+):/ or next;

		if (/sys_exit_epoll_wait/) {
			($begin, $off) = ($time, 0);

		} elsif (!defined $begin) {
			next;

		} elsif (/PERF_RECORD_SWITCH.*OUT/) {
			$since = $time;

		} elsif (/PERF_RECORD_SWITCH.*IN/) {
			$off += $time - $since if defined $since;
			$since = undef;

		} elsif (/sys_enter_epoll_wait/) {
			push @turns, 1e6 * ($time - $begin - $off);
			$begin = undef;
		}
	}

	unlink($data);

	return sort { $a <=> $b } @turns;
}

# Returns how many nanoseconds the loop's thread has run and has waited for a
# processor, and how often it has slept.

sub loop_times {
	my $task = "/proc/$worker/task/$worker";
	my ($run, $wait) = split(' ', slurp("$task/schedstat"));
	my ($slept) = slurp("$task/status")
		=~ /^voluntary_ctxt_switches:\s+(\d+)/m;

	return ($run, $wait, $slept);
}

# --------------------------------------------------------------------------
# sending

sub connected {
	my $c = IO::Socket::INET->new(Proto => 'tcp',
		PeerAddr => '127.0.0.1', PeerPort => $t->port())
		or die "cannot connect: $@\n";

	$c->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);

	return $c;
}

# Sends the requests [ method, uri, \body ] concurrently, each on its own
# connection.  All requests must succeed.  With again => 1 they are repeated
# forever.

sub send_all {
	my ($requests, %o) = @_;

	my ($reading, $writing) = (IO::Select->new(), IO::Select->new());
	my %state;

	for my $request (@$requests) {
		my $c = connected();
		my ($method, $uri, $body) = @$request;

		$c->blocking(0);
		$state{$c} = {
			head => "$method $uri HTTP/1.1\r\nHost: localhost\r\n"
				. 'Content-Length: ' . length($$body)
				. "\r\n\r\n",
			body => $body, pos => 0, answer => ''
		};
		syswrite($c, $state{$c}{head});
		$reading->add($c);
		$writing->add($c);
	}

	while ($reading->count()) {
		my ($r, $w) = IO::Select->select($reading, $writing, undef, 60)
			or die "the server hangs\n";

		for my $c (@$w) {
			my $s = $state{$c};
			my $left = length(${ $s->{body} }) - $s->{pos};
			my $n = syswrite($c, ${ $s->{body} },
				$left > 1 << 20 ? 1 << 20 : $left, $s->{pos});

			die "cannot send: $!\n" unless defined $n
				|| $! == EAGAIN || $! == EWOULDBLOCK
				|| $! == EINTR;

			$s->{pos} += $n // 0;
			$writing->remove($c)
				if $s->{pos} == length(${ $s->{body} });
		}

		for my $c (@$r) {
			my $s = $state{$c};
			my $n = sysread($c, $s->{answer}, 4096,
				length($s->{answer}));

			die "refused: $s->{answer}\n" if defined $n && $n == 0;
			next unless whole($s->{answer});
			die "refused: $s->{answer}\n"
				unless $s->{answer} =~ m!^HTTP/1.1 20[014] !;

			if ($o{again}) {
				@$s{qw/ pos answer /} = (0, '');
				syswrite($c, $s->{head});
				$writing->add($c);

			} else {
				$reading->remove($c);
				close($c);
			}
		}
	}
}

sub whole {
	my ($head, $body) = split(/\r\n\r\n/, $_[0], 2);

	return 0 unless defined $body;
	return 1 unless $head =~ /^Content-Length: (\d+)/mi;
	return length($body) >= $1;
}

sub repeat {
	my ($n, $method, $uri, $body) = @_;

	$SIG{TERM} = sub { POSIX::_exit(0) };
	send_all([ map { [ $method, $uri, $body ] } 1 .. $n ], again => 1);
}
