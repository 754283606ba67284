#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures a Hub with a repo of 100,000 files in a folder: tree pages of 1,000
# entries, HEAD of a file, and commits of one file and of 1,000 files.  Each
# request is compared with the same statements sent by pgbench, and with "return
# 200" with a body of the same size.  nginx and PostgreSQL share one processor,
# the load has the other one.
#
#     perl t/bench/hub.pl [files]
#
# Another server with the same routes can be measured, too, under the same load:
#
#     XET_BENCH_HUB=http://127.0.0.1:8081 perl t/bench/hub.pl
#
# The other server must already have the repo me/m with the files
# data/000001.bin ...; only reads are sent to it.  Its processes are not pinned.
#
# hfd, of matrixhub-ai, keeps repos in git and lists a whole folder in one
# response.  This script can also start the hfd binary, on our server's
# processor, with a repo of 1,000 files in a folder, and request the listing of
# these files from hfd and from our server:
#
#     XET_BENCH_HFD=/usr/local/bin/hfd perl t/bench/hub.pl
#
# Needs "make build tools cli", wrk, pgbench, and ab for HEAD, because wrk waits
# for a body; hfd also needs git.  Takes three minutes, two more with hfd.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Digest::SHA ();
use File::Temp qw/ tempdir /;
use JSON::PP ();

use Test::Xet;
use Test::Xet::Process qw/ free_port reap run_command slurp spawn spew
	wait_for /;
use Test::Xet::Token;

my $files = shift || choose(100_000, 2000);
my $repeats = repeats(5);
my $seconds = seconds(2);
my $other = $ENV{XET_BENCH_HUB};
my $hfd = $ENV{XET_BENCH_HFD};
my $oid = 'ab' x 32;
my $dir = tempdir(CLEANUP => 1);

need('wrk', 'wrk');
need('ab', 'apache2-utils');
need('git', 'git') if $hfd;
bench_start("a Hub, a repo of $files files, one worker");

my $t = server(1000);

fill();

my $uri = '/api/models/me/m/tree/main/data';
my $page = $t->get($uri);
my $head = '/me/m/resolve/main/' . name(7);

die "no page: " . $page->summary() . "\n" if $page->{status} != 200
	|| @{ $page->json() } != 1000;
die "no file\n" if $t->head($head)->{status} != 200;

$t->write_conf(undef, server => constant(length($page->{body})));
$t->reload();

# the URIs of all tree pages of 1,000 entries, for wrk

spew("$dir/pages", join('', map { "$_\n" } pages()));

my $get = 'local request = wrk.format("GET", line)' . "\n";
my $who = "ROW(0, 'me', 'm', true, '{}', true, ''), 'main'";

# in each row: a label, the key of the result, a wrk script, the URI, and the
# SQL statements alone, for pgbench

my @rows = (
	[ 'page of 1,000', 'page', wrk_script("$dir/pages", $get), $uri,
		"\\set n random(0, $files / 1000 - 2) * 1000\n"
		. "SELECT * FROM xet.hub_tree_rows($who, 'data', false, false,"
		. " 'data/' || lpad((:n)::text, 6, '0') || '.bin', 1000, 500);\n" ],
	[ 'HEAD resolve', 'head', undef, $head,
		"SELECT * FROM xet.hub_resolve($who, '" . name(7) . "');\n" ],
	[ 'commit of 1', 'commit', commits(1), '/api/models/me/c/commit/main',
		bare_commit(1) ],
	[ 'commit of 1,000', 'commit', commits(1000),
		'/api/models/me/c/commit/main', bare_commit(1000) ]
);

my %m;
my ($worker) = $t->worker_pids();

for my $round (bench_short() .. $repeats) {
	for my $row (@rows) {
		my ($name, $what, $script, $path, $sql) = @$row;

		for my $c ($what eq 'commit' ? 1 : (1, 16)) {
			pin($_, server_cpu()) for pg_pids($t);
			empty() if $what eq 'commit';

			my $into = $m{"$name, $c"} ||= {};
			my $r = load($t->url($path), $c, $script);

			empty() if $what eq 'commit';

			my $q = bare($sql, $c);
			my $k = load($t->url($what eq 'page' ? '/page'
				: '/200'), $c, $what eq 'head' ? undef : '');
			my $o = $other && $what ne 'commit'
				? load("$other$path", $c, $script) : undef;

			next if $round == 0;

			push @{ $into->{rps} }, $r->{rps};
			push @{ $into->{bare} }, $q;
			push @{ $into->{const} }, $k->{rps};
			push @{ $into->{limit} }, $r->{rps}
				* (1 / $q + 1 / $k->{rps});
			push @{ $into->{nginx} }, $r->{cpu}[0];
			push @{ $into->{pg} }, $r->{cpu}[1];
			push @{ $into->{p99} }, $r->{p99} / 1000;
			push @{ $into->{other} }, $o->{rps} if $o;
		}
	}
}

report();
beside() if $hfd;

bench_end($t);

# --------------------------------------------------------------------------

sub server {
	my ($size) = @_;

	my $server = bench_server(server => constant($size),
		http => Test::Xet::Token::token_directive(),
		locations => bench_hub());

	$server->token_key();
	$server->run();

	return $server;
}

# nginx accepts no configuration word of more than 4 KiB.

sub constant {
	my ($size) = @_;

	my @lines;

	for (my $n = 0; $size > 0; $n++) {
		my $part = $size > 3000 ? 3000 : $size;

		push @lines, "    set \$part$n \"" . 'x' x $part . '";';
		$size -= $part;
	}

	return join("\n        ", '', 'location = /200 {', '    return 200;',
		'}', '', 'location = /page {',
		'    default_type application/json;', @lines,
		'    return 200 "' . join('', map { "\$part$_" } 0 .. $#lines)
			. '";',
		'}');
}

# Returns the URIs of all pages.  Each page links to the next one.

sub pages {
	my @pages = $uri;

	while (@pages < $files / 1000) {
		my $link = $t->get($pages[-1])->header_value('Link') // '';
		my ($next) = $link =~ m!^<https?://[^/]+(/[^>]+)>; rel="next"!;

		push @pages, $next // die "no next page: $link\n";
	}

	return @pages;
}

sub name { return sprintf('data/%06d.bin', $_[0]) }

# Creates repo m with all files, k with 1,000 files, and c for commits.  The
# files have no data, because no request reads it.

sub fill {
	for my $name (qw/ m c k /) {
		my $r = $t->post('/api/repos/create', \"{\"name\":\"$name\"}",
			{ 'Content-Type' => 'application/json' });

		die $r->summary() if $r->{status} != 200;
	}

	$t->sql(<<"EOF_SQL", timeout => 300);
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                           sha256, made)
SELECT c.repo_id, 0, 'data/' || lpad(n::text, 6, '0') || '.bin', 2, 'data',
       sha256(int4send(n)), 1000000 + n, sha256(int8send(n)), c.oid
  FROM generate_series(1, $files) n, xet.hub_commits c
 WHERE c.repo_id = 1 OR c.repo_id = 3 AND n <= 1000;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)
SELECT c.repo_id, 0, 'data', 2, '', c.oid
  FROM xet.hub_commits c WHERE c.repo_id <> 2;
UPDATE xet.hub_commits SET seq = 2 WHERE repo_id <> 2;
UPDATE xet.hub_lines SET last = 2, files = $files WHERE repo_id = 1;
UPDATE xet.hub_lines SET last = 2, files = 1000 WHERE repo_id = 3;
INSERT INTO xet.files (hash, size, term_count, sha256, sha256_proven)
VALUES (sha256('x'), 5, 1, '\\x$oid', true);
INSERT INTO xet.repo_files (repo_id, file_id, sha256)
SELECT r.id, f.id, f.sha256 FROM xet.repos r, xet.files f
 WHERE r.name = '_hub/2';
EOF_SQL
	empty();
	$t->sql('VACUUM ANALYZE', timeout => 300);
}

# Removes all commits from repo c.  First waits for commits whose client has
# disconnected.

sub empty {
	$t->sql('LOCK TABLE xet.hub_refs;'
		. ' DELETE FROM xet.hub_paths WHERE repo_id = 2;'
		. ' DELETE FROM xet.hub_commits WHERE repo_id = 2 AND seq > 1;'
		. ' UPDATE xet.hub_lines SET last = 1, files = 0, bytes = 0'
		. ' WHERE repo_id = 2; UPDATE xet.hub_refs r SET oid = c.oid'
		. ' FROM xet.hub_commits c WHERE c.repo_id = 2'
		. ' AND r.repo_id = 2; DELETE FROM xet.hub_staged;', timeout => 60);
	$t->sql('VACUUM xet.hub_paths, xet.hub_commits, xet.hub_staged');
}

# Returns a wrk script whose requests each commit $n new files in a new folder.
# The data of these files is already stored.

sub commits {
	my ($n) = @_;

	return <<"EOL";
local n = 0

function request()
   n = n + 1
   local lines = { '{"key":"header","value":{"summary":"a commit"}}' }
   for i = 1, $n do
      lines[i + 1] = '{"key":"lfsFile","value":{"path":"d' .. n .. '/f' .. i
         .. '","algo":"sha256","oid":"$oid","size":5}}'
   end
   return wrk.format("POST", nil, nil, table.concat(lines, "\\n"))
end
EOL
}

# Returns the SQL statements that the server runs for a commit of $n new files,
# in the same order.

sub bare_commit {
	my ($n) = @_;

	my $of = "FROM generate_series(1, $n)";

	return <<"EOF_SQL";
\\set a random(1, 9000000000000000000)
SELECT * FROM xet.hub_enter(ROW(0, 'me', 'c', true, '{}', true, ''), 'main',
    true);
SELECT xet.hub_stage(int8send(:a) || int8send(:a), 0,
    (SELECT array_agg(2) $of),
    (SELECT array_agg(convert_to('d' || :a || '/f' || i, 'UTF8')) $of i),
    (SELECT array_agg(5::bigint) $of),
    (SELECT array_agg(NULL::bytea) $of),
    (SELECT array_agg('\\x$oid'::bytea) $of),
    (SELECT array_agg(NULL::bigint) $of),
    (SELECT array_agg(NULL::bytea) $of),
    (SELECT array_agg(NULL::bytea) $of));
SELECT * FROM xet.hub_claims('_hub/2', int8send(:a) || int8send(:a), NULL);
SELECT * FROM xet.hub_commit(ROW(0, 'me', 'c', true, '{}', true, ''), 'main',
    int8send(:a) || int8send(:a), NULL, 'me', 'a commit', '', 1);
EOF_SQL
}

# Runs wrk() of Bench or, without a script, sends HEAD requests with ab.

sub load {
	my ($url, $c, $script, $long) = @_;

	my @pids = ($worker, [ pg_pids($t) ]);

	return wrk(url => $url, c => $c, s => $long // $seconds,
		script => $script, pids => \@pids) if defined $script;

	my @before = map { cpu_pids(ref $_ ? @$_ : $_) } @pids;
	my ($status, $out) = run_command([ 'taskset', '-c', load_cpu(), 'ab',
		qw/ -i -k -q -n /, bench_short() ? 200 : (10000000, '-t', $seconds),
		'-c', $c, $url ]);
	my @after = map { cpu_pids(ref $_ ? @$_ : $_) } @pids;
	my ($n) = ($out // '') =~ /^Complete requests:\s+(\d+)/m;
	my ($rps) = ($out // '') =~ /^Requests per second:\s+([\d.]+)/m;
	my ($p99) = ($out // '') =~ /^\s+99%\s+(\d+)/m;

	die "ab: $out\n" if $status || !$n || $out =~ /^Non-2xx/m
		|| $out !~ /^Failed requests:\s+0$/m;

	return { n => $n, rps => $rps, p99 => 1000 * $p99, cpu => [
		map { ($after[$_] - $before[$_]) / $n } 0 .. $#after ] };
}

# Returns the transactions per second of pgbench.  A transaction is one run of
# the script $sql; the script of a Hub commit has several statements.

sub bare {
	my ($sql, $c) = @_;

	my $pg = $t->pg();

	spew("$dir/bare.sql", $sql);

	local $ENV{PGOPTIONS} = $Test::Xet::Postgres::session;

	my ($status, $out) = run_command([ 'taskset', '-c', load_cpu(),
		"$pg->{bin}/pgbench", '-n', '-M', 'prepared', '-c', $c,
		pgbench_length($seconds), '-f', "$dir/bare.sql", '-h', "$pg->{dir}", '-U',
		'xet', 'xet' ]);

	my ($tps) = ($out // '') =~ /^tps = ([\d.]+)/m;

	die "pgbench: $out\n" if $status || !$tps;

	return $tps;
}

sub report {
	# half of what commit 37323adc of this repository takes on the machine
	# of docs/performance.md, measured by turns with this version

	my %goal = ('page of 1,000' => 2620, 'HEAD resolve' => 297,
		'commit of 1' => 3950, 'commit of 1,000' => 111_000);
	my @table = ([ 'what, connections', 'requests/s', 'bare statement',
		'return 200', 'of the limit', 'nginx us', 'PostgreSQL us',
		'p99 ms', $other ? ('other', 'ratio') : () ]);

	for my $row (@rows) {
		for my $c (16, 1) {
			my $name = "$row->[0], $c";
			my $v = $m{$name} or next;

			bench_row("Hub: $row->[0], $c at once", $v->{pg},
				'us PostgreSQL', undef, undef,
				$c == 1 ? $goal{$row->[0]} : undef, 'less');

			push @table, [ $name, map({ spread(@{ $v->{$_} }) }
				qw/ rps bare const limit nginx pg p99 /),
				$v->{other} ? (spread(@{ $v->{other} }),
				ratio($v->{rps}, $v->{other})) : () ];
		}
	}

	print "\n";
	bench_table(@table);
	print "\nthe limit: the bare statement, then \"return 200\"\n";
}

# --------------------------------------------------------------------------
# hfd, in alternation with the module, on one processor; a page takes hfd
# seconds

sub beside {
	my $port = free_port();
	my $url = "http://127.0.0.1:$port";
	my $list = '/tree/main/data';

	hfd_repo("$dir/hfd/repositories/me/k.git");

	my $pid = spawn([ 'taskset', '-c', server_cpu(), $hfd, '-addr',
		"127.0.0.1:$port", '-ssh-addr', '127.0.0.1:' . free_port(),
		'-data', "$dir/hfd" ], output => "$dir/hfd.log");

	wait_for(30, sub { system("curl -sf -o '$dir/list'"
		. " $url/api/models/me/k$list 2>/dev/null") == 0 })
		or die "hfd: " . slurp("$dir/hfd.log") . "\n";

	my $n = @{ JSON::PP::decode_json(slurp("$dir/list")) };

	die "hfd: a page of $n\n" if $n != 1000;

	my (@ours, @theirs);

	for my $round (bench_short() .. $repeats) {
		my $r = load($t->url("/api/models/me/k$list"), 4, '');
		my $o = load("$url/api/models/me/k$list", 4, '', 15);

		next if $round == 0;

		push @ours, $r->{rps};
		push @theirs, $o->{rps};
	}

	kill('TERM', $pid);
	reap($pid, 10);

	printf("\ntree page of 1,000: ours %s/s, hfd %s/s, ratio %s;"
		. " 4 connections\n", spread(@ours), spread(@theirs),
		ratio(\@ours, \@theirs));
}

# Creates a git repo of 1,000 LFS files.

sub hfd_repo {
	my ($repo) = @_;

	my $text = "commit refs/heads/main\ncommitter me <me\@me> 0 +0000\n"
		. "data 1\nx\n";

	for my $n (1 .. 1000) {
		my $pointer = "version https://git-lfs.github.com/spec/v1\n"
			. "oid sha256:" . Digest::SHA::sha256_hex($n)
			. "\nsize " . (1000000 + $n) . "\n";

		$text .= 'M 100644 inline ' . name($n) . "\ndata "
			. length($pointer) . "\n$pointer\n";
	}

	spew("$dir/import", $text);
	system("git init -q --bare -b main '$repo' && git -C '$repo'"
		. " fast-import --quiet < '$dir/import'") == 0
		or die "git has made no repo\n";
}
