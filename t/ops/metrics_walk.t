#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Store figures that need several queries: the sums include each part once, even
# if the worker that runs the queries is killed or waits for a lock.  The
# status also lists the largest repos, with any names.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Metrics;

my $t = Test::Xet->new(log => 'info', workers => 2, timeout => 900,
	locations => <<'EOC');
xet_auth off;
location /api/ { xet_api; }
location = /metrics { xet_metrics; }
location = /status { xet_status; }
location = /repos { xet_status repos; }
EOC

$t->run();

# 120,000 files of 1 to 120,000 bytes: three parts of the walk, and its end

$t->sql(<<'EOS');
INSERT INTO xet.files (hash, size, term_count, packed)
SELECT sha256(g::text::bytea), g, 0, '' FROM generate_series(1, 120000) AS g
 ORDER BY g;

INSERT INTO xet.repos (name)
SELECT 'team/model-' || g FROM generate_series(1, 14) AS g ORDER BY g;

UPDATE xet.repos SET name = '<script>evil()</script>"&''' WHERE id =
    (SELECT max(id) FROM xet.repos);

-- 1 to 13 have as many files of 1,000 bytes as their number, the last one has
-- 45,000 of the others

INSERT INTO xet.repo_files (repo_id, file_id)
SELECT r.n, f.id
  FROM (SELECT id AS n FROM xet.repos) r
  JOIN xet.files f ON r.n < 14 AND f.size BETWEEN 1 AND r.n;

INSERT INTO xet.repo_files (repo_id, file_id)
SELECT 14, f.id FROM xet.files f WHERE f.size BETWEEN 20001 AND 65000;

ANALYZE;
EOS

my $sum = 120000 * 120001 / 2;
my $m;

my %size = map { $_ => $_ * ($_ + 1) / 2 } 1 .. 13;
my $large = (20001 + 65000) * 45000 / 2;

# all workers are killed during the walk, including the worker that runs it

my $killed = 0;
my (@seen, $repos);

ok(wait_for(200, sub {
	$m = metrics($t);
	$repos = $t->get('/repos?format=json')->json()->{repos};
	push @seen, $m->{xet_files} if defined $m->{xet_files};

	if (!$killed++) {
		$t->kill_worker('KILL', $_) for $t->worker_pids();
	}

	select(undef, undef, undef, 0.5);

	return defined $m->{xet_files} && @$repos;
}), 'the walks come to an end');

is($m->{xet_files}, 120000, 'files');
is($m->{xet_file_bytes}, $sum, 'their bytes');
is($m->{xet_repos}, 14, 'repos');
is(join(' ', grep { $_ != 120000 } @seen), '', 'no partial sums');

# --------------------------------------------------------------------------
# repos

my $evil = q{<script>evil()</script>"&'};

is_deeply($repos, [ map { my ($name, $files, $bytes) = @$_; {
	name => $name, files => $files, bytes => $bytes } }
	[ $evil, 45000, $large ],
	map({ [ "team/model-$_", $_, $size{$_} ] } reverse 5 .. 13) ],
	'the ten largest repos, the largest first') or diag(explain($repos));

my $plain = $t->get('/status')->{body};

unlike($plain, qr/team|evil/, 'no names where not configured');
ok(!exists $t->get('/status?format=json')->json()->{repos},
	'no names in its JSON');
unlike($t->get('/metrics')->{body}, qr/team/, 'no names in metrics');
is($t->get('/status')->{status}, 200, 'still there');

# --------------------------------------------------------------------------
# a locked table: the figures keep their values, and requests do not wait

{
	my $lock = $t->pg_lock('xet.files');
	my $before = metrics($t);
	my $start = time();

	$m = metrics($t) for 1 .. 20;
	cmp_ok(time() - $start, '<', 10, 'locked: nobody waits');
	is($m->{xet_files}, 120000, 'locked: the last known figure');
	$lock->close();
}

$t->done();
