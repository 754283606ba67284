package Bench;

# Copyright (C) the ngx_http_xet_module authors

# Shared code of the benchmarks: a private network, pinning of processes to
# processors, CPU time and memory of processes, wrk, and tables.
#
#     use Bench;
#
#     bench_start('what is measured');        # may restart the script
#     my $t = bench_server(store => 'tmpfs', locations => '...');
#     ...
#     bench_end($t);
#
# Environment variables, in addition to those of Test::Xet:
#
#     XET_BENCH_NET      "host": use the machine's network
#     XET_BENCH_REPEATS  repetitions, unless the script sets them
#     XET_BENCH_SECONDS  seconds of each load of wrk, ab or pgbench
#     XET_BENCH_SHORT    1: one repetition of a tiny size, which takes about a
#                        second and shows only that the script works
#     XET_BENCH_QUICK    1: only what bench_row() records
#     XET_BENCH_JSON     file to which bench_row() appends the results
#     XET_BENCH_SERVER_CPU, XET_BENCH_LOAD_CPU  0 and 1

use warnings;
use strict;

use parent qw/ Exporter /;

use Cwd qw/ abs_path /;
use File::Basename qw/ basename dirname /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw/ time /;

use lib abs_path(dirname(__FILE__)) . '/../lib';

use Test::Xet;
use Test::Xet::Process qw/ build_dir children root slurp spew /;

our @EXPORT = qw/
	bench_dav_server bench_end bench_files bench_heading bench_note
	bench_hub bench_quick bench_reset bench_row bench_server bench_short
	bench_start bench_table choose cpu_pids cpu_us files_script load_cpu
	median memory memory_reset need need_file pg_pids pgbench_length pin
	ratio repeats seconds server_cpu spread wrk wrk_script
/;

my @command = map { /[^\w.\/=-]/ ? "'$_'" : $_ } $^X, $0, @ARGV;
my @arguments = @ARGV;
my @scratch;

# the programs that a script runs write no rows of their own

my $json = delete $ENV{XET_BENCH_JSON};

sub server_cpu { return $ENV{XET_BENCH_SERVER_CPU} // 0 }
sub load_cpu { return $ENV{XET_BENCH_LOAD_CPU} // 1 }
sub bench_short { return $ENV{XET_BENCH_SHORT} ? 1 : 0 }
sub bench_quick { return $ENV{XET_BENCH_QUICK} && !bench_short() }
sub choose { return $_[bench_short()] }
sub repeats { return choose($ENV{XET_BENCH_REPEATS} || $_[0] || 5, 1) }
sub seconds { return choose($ENV{XET_BENCH_SECONDS} || $_[0], 1) }

# --------------------------------------------------------------------------
# the environment

# A loopback interface has two traps: BBR paces a client on the same machine,
# and with an MTU of 65536 tcp_nopush can wait for 44 ms.  Therefore everything
# runs, if permitted, in a private network without BBR and with a small MTU.
# This process creates the load; it runs on the load's processor, unless pin is
# 0.

sub bench_start {
	my ($what, %o) = @_;

	if ($> == 0 && !defined $ENV{XET_BENCH_NET} && have('unshare')) {
		local $ENV{XET_BENCH_NET} = 'own';
		local $ENV{XET_BENCH_JSON} = $json;

		delete $ENV{XET_BENCH_JSON} unless defined $json;
		exec('unshare', '--net', $^X, $0, @arguments)
			or die "cannot run unshare: $!\n";
	}

	if (($ENV{XET_BENCH_NET} // '') eq 'own') {
		system('ip link set lo up mtu 1500 && sysctl -qw'
			. ' net.ipv4.tcp_congestion_control=reno') == 0
			or die "cannot set up a network\n";
	}

	$| = 1;
	pin($$, load_cpu()) if $o{pin} // 1;

	print "$what\n";
	bench_note('command', join(' ', @command));
	bench_note('machine', machine());
	bench_note('network', network());
	bench_note('load', load());
	bench_note('module', module_state());
}

sub machine {
	my ($model) = slurp('/proc/cpuinfo') =~ /^model name\s*:\s*(.*)$/m;
	my $n = () = slurp('/proc/cpuinfo') =~ /^processor\s*:/mg;
	my @uname = POSIX::uname();

	return ($model // $uname[4]) . ", $n CPUs, $uname[0] $uname[2]";
}

sub network {
	my $sysctl = '/proc/sys/net/ipv4/tcp_congestion_control';
	my $control = slurp($sysctl, 1) // '?';
	my $mtu = slurp('/sys/class/net/lo/mtu', 1) // '?';

	# sysfs shows the network namespace that was current when it was mounted

	$mtu = $1 if `ip -o link show lo 2>/dev/null` =~ / mtu (\d+)/;
	chomp($control, $mtu);

	return "loopback, MTU $mtu, $control"
		. ($control eq 'bbr' ? ' (a trap: docs/performance.md)' : '');
}

sub load {
	my ($load) = slurp('/proc/loadavg') =~ /^(\S+ \S+)/;

	return "$load (1 and 5 minutes, before)";
}

sub module_state {
	my $module = $ENV{XET_TEST_MODULE}
		// build_dir() . '/nginx/ngx_http_xet_module.so';
	my $time = (stat($module))[9] or return 'linked in';

	return POSIX::strftime('%Y-%m-%d %H:%M:%S', localtime($time));
}

sub have {
	my ($program) = @_;

	for my $dir (split(/:/, $ENV{PATH})) {
		return "$dir/$program" if -x "$dir/$program";
	}

	return undef;
}

sub need {
	my ($program, $package) = @_;

	return if have($program);

	print "$program is missing (package $package): nothing measured\n";
	exit(0);
}

# Like need(), for a file that something else creates.

sub need_file {
	my ($file, $how) = @_;

	return if -e $file;

	print "$file is missing ($how): nothing measured\n";
	exit(0);
}

# --------------------------------------------------------------------------
# the server

# Creates a server with one worker, on its own processor unless pin is 0.
# Accepts the options of Test::Xet->new(), and store: "tmpfs" or "disk".  The
# access log is off, so that its cost is not measured.

sub bench_server {
	my (%o) = @_;

	my $where = delete $o{store} || 'tmpfs';
	my $http = $o{http} // '';
	my $pin = delete $o{pin} // 1;

	my $t = Test::Xet->new(
		log => 'warn', timeout => 900, durable => 1, %o,
		pg_conf => "shared_buffers = 256MB\n" . ($o{pg_conf} // ''),
		main => ($pin ? 'worker_cpu_affinity 1' . '0' x server_cpu()
			. ";\n" : '') . ($o{main} // ''),
		http => "access_log off;\n    keepalive_requests 1000000000;\n"
			. "    keepalive_time 1d;\n    sendfile on;\n    $http"
	);

	if ($where eq 'tmpfs') {
		my $dir = tempdir('xbench-XXXXXX', DIR => '/dev/shm');

		push @scratch, $dir;
		chmod(0755, $dir);
		move($t->store(), "$dir/store");
		move($t->dir() . '/temp', "$dir/temp");
	}

	return $t;
}

# The locations of a Hub without tokens.

sub bench_hub {
	return <<'EOC';
location / {
            xet_hub on;
            xet_auth off;
            xet_api_base /cas;
            client_max_body_size 200m;
        }

        %%CAS%%
EOC
}

# Like bench_server(), but also starts the server, adds a PUT location of
# nginx's dav module for bodies up to $max, and pins PostgreSQL to the load's
# processor.

sub bench_dav_server {
	my ($max, %o) = @_;

	my $t = bench_server(%o, server => join("\n        ",
		$o{server} // '', 'location /dav/ {',
		'    dav_methods PUT;',
		'    create_full_put_path on;',
		"    client_max_body_size $max;",
		'    client_body_buffer_size 256k;',
		'}'));

	$t->run();
	pin($_, load_cpu()) for pg_pids($t);

	return $t;
}

sub move {
	my ($from, $to) = @_;

	my ($uid, $gid) = (stat($from))[4, 5];

	rmdir($from) or die "$from: $!\n";
	mkdir($to) && chown($uid, $gid, $to) && symlink($to, $from)
		or die "$to: $!\n";
}

# Deletes all xorbs and files, so that the next upload is not a repetition.

sub bench_reset {
	my ($t) = @_;

	$t->sql('TRUNCATE xet.xorbs, xet.chunks, xet.charges, xet.xorb_repos,'
		. ' xet.xorb_subjects, xet.files, xet.file_xorbs,'
		. ' xet.repo_files, xet.hub_loose, xet.staged CASCADE');

	for my $file (glob($t->store() . '/xorbs/default/*/*')) {
		unlink($file) or die "$file: $!\n";
	}
}

# Uploads one file of 20 terms as clients do, and copies its row to many other
# file hashes.  Returns the body of a reconstruction, and the path of a file
# that lists all hashes.

sub bench_files {
	my ($t, $files, $dir) = @_;

	my $file = $t->upload(random_bytes(1, 20 * 16384),
		sizes => [ (16384) x 20 ], xorb_chunks => 1);
	my $r = $t->get("/api/v2/reconstructions/$file->{hash}");

	die "no plan of 20 terms: $r->{status} $r->{body}\n"
		if $r->{status} != 200 || @{ $r->json()->{terms} } != 20;

	$t->sql('INSERT INTO xet.files (hash, size, term_count, packed)'
		. " SELECT sha256(g::text::bytea), size, term_count, packed"
		. " FROM xet.files, generate_series(1, $files) AS g");
	$t->sql('VACUUM ANALYZE');

	my @names = map {
		join('', map { join('', reverse /../g) } /.{16}/g)
	} $t->sql("SELECT encode(hash, 'hex') FROM xet.files");

	spew("$dir/hashes", join("\n", @names) . "\n");

	return ($r->{body}, "$dir/hashes");
}

# Returns a wrk script that requests reconstructions of the listed hashes.

sub files_script {
	my ($names) = @_;

	return wrk_script($names, <<'EOL');
      local request = wrk.format("GET", "/api/v2/reconstructions/" .. line)
EOL
}

sub bench_end {
	my ($t) = @_;

	my $good = $t->stop();

	print "nginx has not stopped cleanly:\n", $t->log() unless $good;
	print grep { /\[(?:alert|emerg|crit)\]/ } split(/^/m, $t->log());

	$t->pg()->stop() if $t->pg();
	$t->{checked} = 1;
	$t->remove();
	clean();
}

sub clean {
	system('rm', '-rf', splice(@scratch)) if @scratch;
}

my $owner = $$;

END { local $?; clean() if $$ == $owner }

# --------------------------------------------------------------------------
# processes

# Pins all threads of a process to one processor, or prints a failure.

sub pin {
	my ($pid, $cpu) = @_;

	system("taskset -apc $cpu $pid >/dev/null 2>&1") == 0
		or print "cannot pin process $pid to processor $cpu\n";
}

# Returns the CPU time (user and system) of all threads of a process, in
# microseconds.  It is exact if the kernel reports nanoseconds, otherwise a
# multiple of ticks.

sub cpu_us {
	my ($pid) = @_;

	my $sum = 0;

	for my $task (glob("/proc/$pid/task/*/schedstat")) {
		my $text = slurp($task, 1) // next;
		$sum += (split(' ', $text))[0] / 1000;
	}

	return $sum if $sum;

	my $stat = slurp("/proc/$pid/stat", 1) // return 0;
	my @fields = split(' ', substr($stat, rindex($stat, ')') + 2));

	return ($fields[11] + $fields[12]) * 1e6
		/ POSIX::sysconf(&POSIX::_SC_CLK_TCK);
}

sub cpu_pids {
	my $sum = 0;
	$sum += cpu_us($_) for @_;

	return $sum;
}

sub pg_pids {
	my ($t) = @_;

	my $pid = $t->pg()->pid();

	return ($pid, children($pid));
}

# Returns the resident memory in KiB, and its peak since the process started or
# since memory_reset().

sub memory {
	my ($pid) = @_;

	my $status = slurp("/proc/$pid/status");

	return map { $status =~ /^$_:\s+(\d+) kB/m ? $1 : 0 } qw/ VmRSS VmHWM /;
}

sub memory_reset {
	my ($pid) = @_;

	open(my $out, '>', "/proc/$pid/clear_refs") or return;
	print $out "5\n";
	close($out);
}

# --------------------------------------------------------------------------
# wrk

my $report = <<'EOL';

function done(summary, latency, requests)
   local e = summary.errors
   io.write(string.format("BENCH %d %d %d %d %d %d %d %d\n",
      summary.requests, summary.bytes, summary.duration, e.status,
      e.connect + e.read + e.write + e.timeout,
      latency:percentile(50), latency:percentile(99), latency.max))
end
EOL

#     url      the URL
#     script   Lua
#     c, s     connections, seconds
#     pids     [ ... ] processes whose CPU time is measured
#
# Returns { n, rps, bytes (per second), p50, p99, max (microseconds), cpu =>
# [ ... ] (microseconds per request, for each entry of pids) }.

sub wrk {
	my (%o) = @_;

	my $file = File::Temp->new(SUFFIX => '.lua');
	print $file $o{script} // '', $report;
	close($file);

	my @before = map { cpu_pids(ref $_ ? @$_ : $_) } @{ $o{pids} || [] };

	my ($d, $out) = choose($o{s}, 60);

	# on SIGINT, wrk reports what it has measured so far

	for my $length (bench_short() ? (0.3, 3, 30) : $d) {
		$out = run_wrk(bench_short()
				? (qw/ timeout -s INT /, $length) : (),
			'taskset', '-c', load_cpu(), 'wrk', '-t1', "-c$o{c}",
			"-d${d}s", '--timeout', '20s', '-s', "$file", $o{url});

		last unless $out =~ /^BENCH 0 /m;
	}

	my @after = map { cpu_pids(ref $_ ? @$_ : $_) } @{ $o{pids} || [] };

	my ($n, $bytes, $us, $status, $other, $p50, $p99, $max)
		= $out =~ /^BENCH ([\d ]+)$/m ? split(' ', $1)
		: die "wrk says: $out\n";

	die "wrk: $status answers of $n were errors, $other failed\n$out\n"
		if $status || $other || $n == 0;

	return {
		n => $n, rps => $n / $us * 1e6, bytes => $bytes / $us * 1e6,
		p50 => $p50, p99 => $p99, max => $max,
		cpu => [ map { ($after[$_] - $before[$_]) / $n } 0 .. $#after ]
	};
}

# Returns a wrk script that sends one request for each line of a file, in turn.
# $code is Lua code that builds the request from "line".

sub wrk_script {
	my ($file, $code) = @_;

	return <<"EOL";
local requests, n = {}, 0

function init(args)
   for line in io.lines("$file") do
$code      n = n + 1
      requests[n] = request
   end
end

local i = 0

function request()
   i = i % n + 1
   return requests[i]
end
EOL
}

sub run_wrk {
	my (@args) = @_;

	open(my $in, '-|', @args) or die "wrk: $!\n";
	local $/;
	my $out = <$in>;
	close($in);

	return $out // '';
}

# Options of pgbench for the length of a run.

sub pgbench_length {
	my ($seconds) = @_;

	return bench_short() ? ('-t', 20) : ('-T', $seconds);
}

# --------------------------------------------------------------------------
# statistics

sub median {
	my @sorted = sort { $a <=> $b } @_;

	return @sorted % 2 ? $sorted[$#sorted / 2]
		: ($sorted[@sorted / 2 - 1] + $sorted[@sorted / 2]) / 2;
}

sub number {
	my ($v) = @_;

	return $v >= 100 ? sprintf('%.0f', $v) : $v >= 10
		? sprintf('%.1f', $v) : sprintf('%.2f', $v);
}

# Formats "median (min..max)".

sub spread {
	my @sorted = sort { $a <=> $b } @_;

	return '-' unless @sorted;
	return number(median(@sorted)) . ' (' . number($sorted[0]) . '..'
		. number($sorted[-1]) . ')';
}

# Returns the ratio of two medians.

sub ratio {
	my ($a, $b) = @_;

	return sprintf('%.2f', median(@$a) / median(@$b));
}

# Records a result for t/bench/all.pl.  The goal and the last run are compared
# with its ratio to what $against names, or with its value if it has no ratio.
# Values and ratios may be lists of measurements, whose medians are
# recorded.  $better is "less", "more", or undef: then the row has no verdict.

sub bench_row {
	my ($name, $value, $unit, $against, $ratio, $goal, $better) = @_;

	return unless defined $json;

	my ($v, $r) = map { ref $_ ? median(@$_) : $_ } $value, $ratio;

	open(my $out, '>>', $json) or die "$json: $!\n";
	syswrite($out, JSON::PP->new()->canonical()->encode({
		program => basename($0), name => $name, value => figure($v),
		unit => $unit, against => $against, ratio => figure($r),
		goal => figure($goal), better => $better }) . "\n");
	close($out) or die "$json: $!\n";
}

sub figure { return defined $_[0] ? 0 + sprintf('%.6g', $_[0]) : undef }

sub bench_heading {
	print "\n== @_\n";
}

sub bench_note {
	my ($name, $text) = @_;

	printf("%-8s %s\n", $name, $text);
}

# Prints rows of cells; the first row has the column names.

sub bench_table {
	my (@rows) = @_;

	my @width;

	for my $row (@rows) {
		for my $i (0 .. $#$row) {
			my $len = length($row->[$i] // '');
			$width[$i] = $len if $len > ($width[$i] // 0);
		}
	}

	for my $row (@rows) {
		my $line = join('  ', map {
			sprintf($_ ? '%*s' : '%-*s', $width[$_],
				$row->[$_] // '')
		} 0 .. $#$row);

		$line =~ s/\s+\z//;
		print "$line\n";
	}
}

1;
