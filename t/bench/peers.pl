#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Compares this server with other servers of the XET protocol that are published
# as crates: local_cas_server, xet-core's server for tests (xet-client, feature
# simulation), and shardline.  hf_xet uploads and downloads a file, and uploads
# small files; curl uploads single xorbs.  Measures seconds, CPU time of the
# server with its database, stored bytes and memory at rest; the downloaded bytes
# must be right.  Then says what each server leaves out, by trying it: whether it
# accepts a damaged xorb and a request without a token, and, if strace is
# installed, whether it syncs a xorb.
#
#     perl t/bench/peers.pl build [crate]
#     perl t/bench/peers.pl
#
# The first command builds the crates with cargo in the folder "peers" of the
# build, with one job; each takes up to an hour.  Peers that are not built are
# named and left out.
#
# Needs "make build tools cli bench-bins" and hf_xet (t/clients/setup.sh).

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Process qw/ build_dir children free_port reap slurp spawn spew
	wait_for /;
use Test::Xet::Real;

my $peers = build_dir() . '/peers';

# What cargo gets, and how the server starts.

my %crate = (
	local_cas_server => {
		install => [ '--version', '1.8.0', '--features', 'simulation',
			'--bin', 'local_cas_server', 'xet-client' ],
		start => sub { my ($bin, $port, $dir) = @_;
			return [ $bin, '--port', $port, '--data-directory', $dir ] }
	},
	shardline => {
		install => [ '--version', '1.13.0', 'shardline' ],
		start => sub { my ($bin, $port, $dir) = @_;
			return [ 'env', "SHARDLINE_BIND_ADDR=127.0.0.1:$port",
				"SHARDLINE_PUBLIC_BASE_URL=http://127.0.0.1:$port",
				"SHARDLINE_ROOT_DIR=$dir",
				'SHARDLINE_AUTH_PROVIDER=passthrough',
				'SHARDLINE_TOKEN_SIGNING_KEY=' . '0' x 64,
				'SHARDLINE_MAX_REQUEST_BODY_BYTES=200000000',
				$bin, 'serve' ] }
	}
);

build(@ARGV[1 .. $#ARGV]) if ($ARGV[0] // '') eq 'build';

my @built = grep { -x "$peers/bin/$_" } sort keys %crate;
my @missing = grep { !-x "$peers/bin/$_" } sort keys %crate;

need_file("$peers/bin", 'perl t/bench/peers.pl build');
need_file("$peers/bin/$missing[0]", 'perl t/bench/peers.pl build')
	unless @built;
need_file(Test::Xet::Real::build() . '/venv/bin/python',
	't/clients/setup.sh');
need('curl', 'curl');
bench_start('this server beside its peers', pin => 0);
bench_note('client', 'hf_xet ' . hf_xet({}, 'version')->{version});
bench_note('missing', "$_: not built, run perl t/bench/peers.pl build $_")
	for @missing;

my $repeats = repeats(3);
my $mib = bench_quick() ? 128 : choose(300, 4);
my $small = bench_quick() ? 300 : choose(2000, 10);
my $dir = tempdir('xpeers-XXXXXX', CLEANUP => 1,
	-d '/dev/shm' ? (DIR => '/dev/shm') : (TMPDIR => 1));
my $file = make_mix("$dir/mix", 1, $mib << 20);
my $sum = sha256_file($file);
my %body = xorbs();
# the caches of conf/nginx.conf

my $t = bench_server(pin => 0, directives => { xet_xorb_max_size => '80m' },
	http => 'xet_plan_cache zone=xet_plans:16m;'
		. ' xet_chunk_filter zone=xet_chunks:16m;');
my ($running, $set, %m, %out, %refused);

END {
	local $?;

	if ($running) {
		kill('TERM', $running->{pid});
		reap($running->{pid}, 10);
	}
}

$t->run();

for my $round (bench_short() .. $repeats) {
	for my $who ('ours', @built) {
		my %one = measure($who);

		next if $round == 0;
		push @{ $m{$who}{$_} }, $one{$_} for keys %one;
	}
}

$out{$_} = left_out($_) for 'ours', @built;

report();
bench_end($t);

# --------------------------------------------------------------------------

# Builds the peers, or only some of them.

sub build {
	my (@names) = @_;

	@names = sort keys %crate unless @names;

	for (@names) {
		my $c = $crate{$_} or die "no peer is called $_\n";

		local $ENV{CARGO_TARGET_DIR} = "$peers/target";

		system('nice', '-n', 10, 'timeout', 3600, qw/ cargo install
			--locked -j 1 --root /, $peers, @{ $c->{install} }) == 0
			or die "cargo: $?\n";
	}

	exit(0);
}

# Returns new files: a cache of chunks may remember those of an earlier round.

sub small_files {
	my @names;

	$set++;

	for my $n (1 .. $small) {
		push @names, "$dir/s$n";
		spew($names[-1], random_bytes($set * $small + $n,
			1024 + $n * 7919 % 30_000));
	}

	return @names;
}

# Xorbs as clients send them: by kind, the file and the hash.

sub xorbs {
	mkdir("$dir/xorbs");
	system(build_dir() . "/bench/bench_xorb_verify 65536 1 $dir/xorbs"
		. ' > /dev/null') == 0 or die "bench_xorb_verify\n";

	return map { m!/(\w+)\.(\w+)\z! ? ($1 => [ $_, $2 ]) : () }
		glob("$dir/xorbs/*");
}

# Starts a server with an empty store.  Returns its URL for clients, its
# processes, and its folder.

sub started {
	my ($who, @before) = @_;

	if ($who eq 'ours') {
		bench_reset($t);

		return { url => $t->url('/api'), store => $t->store() . '/',
			pids => sub { ($t->worker_pids(), pg_pids($t)) } };
	}

	my ($port, $store) = (free_port(), "$dir/store");

	system('rm', '-rf', $store);
	mkdir($store);

	my $pid = spawn([ @before, @{ $crate{$who}{start}->("$peers/bin/$who",
		$port, $store) } ], output => "$dir/$who.log");

	$running = { pid => $pid };

	wait_for(30, sub { system("curl -s -o /dev/null"
		. " http://127.0.0.1:$port/") == 0 })
		or die "$who: " . slurp("$dir/$who.log") . "\n";

	return { url => "http://127.0.0.1:$port", store => $store, pid => $pid,
		pids => sub { ($pid, children($pid)) } };
}

sub stopped {
	my ($s) = @_;

	return unless $s->{pid};

	kill('TERM', $s->{pid});
	reap($s->{pid}, 10);
	$running = undef;
}

my %token;

BEGIN { %token = (env => { XET_TOKEN => 'any', XET_TOKEN_EXPIRY => 4e9 }) }

# Runs $code.  Returns its wall seconds and the server's CPU seconds.

sub timed {
	my ($s, $code) = @_;

	my @pids = $s->{pids}->();
	my ($cpu, $wall) = (cpu_pids(@pids), time());

	$code->();

	return (time() - $wall, (cpu_pids(@pids) - $cpu) / 1e6);
}

sub measure {
	my ($who) = @_;

	my ($s, %one) = (started($who));
	my $info;

	$one{rest} = pss($s->{pids}->());

	@one{qw/ up up_cpu /} = timed($s, sub {
		$info = hf_xet(\%token, 'upload', 'session', $s->{url}, $file)
			or die "$who: upload\n";
	});

	$one{stored} = stored($s);

	@one{qw/ down down_cpu /} = timed($s, sub {
		hf_xet(\%token, 'download', 'session', $s->{url},
			$info->[0]{hash}, $mib << 20, "$dir/out")
			or die "$who: download\n";
	});

	die "$who: other bytes came back\n" if sha256_file("$dir/out") ne $sum;
	unlink("$dir/out");

	my @files = small_files();

	@one{qw/ small small_cpu /} = timed($s, sub {
		hf_xet(\%token, 'upload', 'session', $s->{url}, @files)
			or die "$who: small files\n";
	});

	stopped($s);

	for my $kind (qw/ lz4 bg4 /) {
		my $s = started($who);
		my $status;

		($one{"post_$kind"}, $one{"post_${kind}_cpu"}) = timed($s,
			sub { $status = post($s, @{ $body{$kind} }) });
		stopped($s);

		next if $status =~ /^20/;
		die "$who: xorb: $status\n" if $who eq 'ours';

		# a peer may refuse what hf_xet does not send

		delete @one{"post_$kind", "post_${kind}_cpu"};
		$refused{$who}{$kind} = $status;
	}

	return %one;
}

sub post {
	my ($s, $path, $hash, @more) = @_;

	@more = ('-H', 'Authorization: Bearer any') unless @more;

	my $options = join(' ', map { "'$_'" } @more);

	return `curl -s -o /dev/null -w '%{http_code}' -X POST -H Expect: \\
		$options --data-binary '\@$path' \\
		'$s->{url}/v1/xorbs/default/$hash'`;
}

sub stored {
	my ($s) = @_;

	return (split(/\t/, `du -sLb $s->{store}`))[0];
}

# Proportional memory of processes, in MiB.

sub pss {
	my $sum = 0;

	for (@_) {
		$sum += $1 if (slurp("/proc/$_/smaps_rollup", 1) // '')
			=~ /^Pss:\s+(\d+) kB/m;
	}

	return $sum / 1024;
}

# Tries what a server may leave out.

sub left_out {
	my ($who) = @_;

	my @trace = grep { -x } '/usr/bin/strace';
	my ($path, $hash) = @{ $body{lz4} };
	my $bytes = slurp($path);
	my $s = started($who);
	my @said;

	substr($bytes, length($bytes) / 2, 1) ^= "\x01";
	spew("$dir/damaged", $bytes);

	my $status = post($s, "$dir/damaged", $hash);

	push @said, "a damaged xorb: $status";

	$status = post($s, $path, $hash =~ tr/0-9a-f/1-9a-f0/r);
	push @said, "a xorb with another hash: $status"
		. ($status =~ /^20/ ? ', not verified' : ', verified');

	# the benchmark turns our own checks of tokens off

	$status = $who eq 'ours' ? undef : post($s, $path, $hash, '-H', 'X: x');
	push @said, $status ? "without a token: $status" . ($status =~ /^20/
		? ', no rights' : '') : 'without a token: off in this run,'
		. ' xet_auth';

	stopped($s);

	if (@trace && $who ne 'ours') {
		my $log = "$dir/trace";
		my $s = started($who, @trace, '-f', '-e',
			'trace=fsync,fdatasync,msync,sync_file_range', '-o',
			$log);
		my $before = () = slurp($log) =~ /sync\(/g;

		post($s, $path, $hash);
		sleep(0.5);

		my $n = () = slurp($log) =~ /sync\(/g;

		push @said, 'syncs of a xorb: ' . ($n - $before);
		stopped($s);

	} else {
		push @said, $who eq 'ours' ? 'syncs a xorb before its response'
			: 'syncs: unknown without strace';
	}

	return join('; ', @said);
}

sub report {
	my %what = (up => "upload of $mib MiB, s", up_cpu => '- server, CPU s',
		down => 'download, s', down_cpu => '- server, CPU s',
		small => "$small small files, s", small_cpu => '- server, CPU s',
		post_lz4_cpu => 'POST xorb, text: CPU s',
		post_bg4_cpu => 'POST xorb, bf16: CPU s',
		stored => 'stored bytes', rest => 'memory at rest, MiB (PSS)');
	my @order = qw/ up up_cpu down down_cpu small small_cpu post_lz4_cpu
		post_bg4_cpu stored rest /;

	bench_heading("$repeats repetitions, servers by turns");
	bench_table([ '', 'ours', @built ], map { my $k = $_; [ $what{$k},
		map { $m{$_}{$k} ? spread(@{ $m{$_}{$k} }) : 'refused' }
		'ours', @built ] } @order);
	print "\n";
	for my $who ('ours', @built) {
		my $no = $refused{$who} || {};

		bench_note($who, join('; ', $out{$who}, map {
			"a $_ xorb of 64 MiB: $no->{$_}" } sort keys %$no));
	}

	row('small files up: server CPU', 'small_cpu', 's', 0.7);
	row('upload of a file by hf_xet', 'up', 's', 1);
	row('download of a file by hf_xet', 'down', 's', 1);
	row('POST xorb beside peers, text', 'post_lz4_cpu', 's CPU', 1.15);
	row('POST xorb beside peers, bf16', 'post_bg4_cpu', 's CPU', 1.15);
	row('stored bytes', 'stored', 'bytes', undef);
	row('memory at rest, nginx and PostgreSQL', 'rest', 'MiB', undef);

	bench_row('memory at rest, a worker', pss($t->worker_pids()), 'MiB',
		undef, undef, 8, 'less');
}

# The limit is the best peer.

sub row {
	my ($name, $key, $unit, $goal) = @_;

	my ($best) = sort { median(@{ $m{$a}{$key} })
		<=> median(@{ $m{$b}{$key} }) } grep { $m{$_}{$key} } @built;

	return unless defined $best;

	# ticks may be too coarse for tiny sizes

	my $theirs = median(@{ $m{$best}{$key} }) || 1e-3;

	bench_row($name, $m{ours}{$key}, $unit, $best,
		median(@{ $m{ours}{$key} }) / $theirs, $goal, 'less');
}
