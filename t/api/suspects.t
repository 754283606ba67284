#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Known files are uploaded again with other terms, after copies of their old
# terms were lost and before anyone has noticed the loss.  All of the files get
# the new terms, however many files and xorbs there are.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;

my $t = Test::Xet->new(workers => 1, log => 'info',
	directives => { xet_dedup_key => undef });

$t->run();
$t->allow(qr/can't be read/, qr/is missing or has another size/);

# --------------------------------------------------------------------------
# more lost copies than are recorded in one batch

{
	my ($n, $size) = (1100, 3000);
	my $all = random_bytes(7, $n * $size);
	my @hashes = map {
		my $data = substr($all, $_ * $size, $size);

		$t->http('PUT', '/api/v1/files', {}, \$data)->json()->{hash}
	} 0 .. $n - 1;

	$t->remove_copy($_) for $t->files_in_store();

	my $x = make_xorb($all, sizes => [ ($size) x $n ], large => 1);

	is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status}, 200, 'many copies are lost: one xorb for all');

	my $shard = make_large_shard($x,
		[ map { [ [ $_, $_ + 1 ] ] } 0 .. $n - 1 ]);

	is($shard->{files}[5]{hash}, $hashes[5], 'the same files');
	is($t->post('/api/v1/shards', \$shard->{bytes})->{status}, 200,
		'sent again');
	is(unreadable(@hashes), '', 'all are readable');
}

# --------------------------------------------------------------------------
# one lost copy after thousands of references to other copies

{
	my ($n, $k, $size) = (850, 10, 100);
	my @raw = map { random_bytes(50 + $_, $n * $size) } 1 .. $k;
	my @xorbs = map { send_xorb($t, $_, sizes => [ ($size) x $n ]) } @raw;
	my $shard = shard([ map { my $i = $_; [ map { [ $_, $i, $i + 1 ] }
		@xorbs ] } 0 .. $n - 1 ], @xorbs);

	is($t->post('/api/v1/shards', \$shard->{bytes})->{status}, 200,
		'many references: files');

	my $data = random_bytes(99, 3000);
	my $lost = send_xorb($t, $data, sizes => [ 3000 ]);
	my $last = register_file($t, [ [ $lost ] ]);

	$t->remove_copy($t->copy($lost->{hash}));

	# sends all files again, from two other xorbs

	my (@again, @files);

	for my $part (0, 1) {
		my @i = map { $_ + $part * $n / 2 } 0 .. $n / 2 - 1;
		my $x = send_xorb($t, join('', map { my $i = $_;
			map { substr($_, $i * $size, $size) } @raw } @i)
			. ($part ? $data : ''), sizes => [
				($size) x ($n / 2 * $k), $part ? 3000 : () ]);

		push @again, $x;
		push @files, map { [ [ $x, $_ * $k, ($_ + 1) * $k ] ] }
			0 .. $n / 2 - 1;
		push @files, [ [ $x, $n / 2 * $k, $n / 2 * $k + 1 ] ] if $part;
	}

	my $second = shard(\@files, @again);

	is($second->{files}[$_]{hash}, $shard->{files}[$_]{hash},
		'the same file') for 3, 700;
	is($second->{files}[-1]{hash}, $last->{hash}, 'and the last one');
	is($t->post('/api/v1/shards', \$second->{bytes})->{status}, 200,
		'sent again');
	cmp_ok($t->sql('SELECT count(*) FROM xet.file_xorbs'), '>', 8192,
		'references');
	is(unreadable($last->{hash}, map { $_->{hash} }
		@{ $shard->{files} }[0, 1, 849]), '', 'readable');
}

# --------------------------------------------------------------------------
# each reference is read only once, however many batches there are

{
	my ($xorbs, $files) = (20000, 600);

	$t->sql(<<"EOF");
DELETE FROM xet.files; DELETE FROM xet.xorbs;
INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size,
                       chunk_hashes, raw_ends, stored_ends, copy_id, damaged_at)
SELECT sha256(int4send(i)), 1, 100, 108, sha256(int4send(-i)),
       '\\x64000000', '\\x6c000000', i, CASE WHEN i % 5 = 0 THEN now() END
  FROM generate_series(1, $xorbs) i;
INSERT INTO xet.files (hash, size, term_count, packed)
SELECT sha256(int8send(i)), 0, 0, CASE WHEN i % 2 = 0 THEN ''::bytea END
  FROM generate_series(1, $files) i;
INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
SELECT f.id, x.id, '{[0,1)}'
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM xet.files) f,
       (SELECT id, row_number() OVER (ORDER BY id) AS n FROM xet.xorbs) x
 WHERE x.n % 400 = f.n % 400 OR f.n = 7;
EOF

	my ($read, $seen, $different, $pairs, $windows) = $t->sql(<<'EOF');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
CREATE TEMP TABLE batch AS
SELECT array_agg(hash ORDER BY id) AS hashes,
       array_agg('\x00'::bytea) AS packed FROM xet.files;
CREATE TEMP TABLE seen (copy_id integer);
CREATE TEMP TABLE done (windows integer);
BEGIN;
DO $$
DECLARE
    d       record;
    file    bigint := 0;
    xorb    bigint := 0;
    windows integer := 0;
    more    boolean;
BEGIN
    LOOP
        windows := windows + 1;
        more := false;

        FOR d IN SELECT s.* FROM batch b,
                   xet.shard_suspects(b.hashes, b.packed, file, xorb) s
        LOOP
            IF d.hash IS NOT NULL THEN
                INSERT INTO seen VALUES (d.copy_id);
            ELSE
                more := true;
                file := d.file;
                xorb := d.xorb;
            END IF;
        END LOOP;

        EXIT WHEN NOT more OR windows > 1000;
    END LOOP;

    INSERT INTO done VALUES (windows);
END;
$$;
SELECT sum(coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables
 WHERE schemaname = 'xet';
SELECT count(DISTINCT copy_id) FROM seen;
SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NULL;
SELECT count(*) FROM xet.file_xorbs;
SELECT windows FROM done;
COMMIT;
EOF

	is($seen, $different, 'windows: every xorb not known to be lost');
	cmp_ok($windows, '<=', $pairs / 1024 + 1,
		'windows: as many as need be');

	# rows read: the pairs, the xorbs of each batch, and the files of a
	# batch

	cmp_ok($read, '<=', 2 * $pairs + 256 * $windows + 2 * $files,
		'windows: each reference is read once');
	cmp_ok($read, '>=', $pairs, 'windows: and is');
}

$t->done();

# --------------------------------------------------------------------------

sub shard {
	my ($files, @xorbs) = @_;

	return make_shard({ files => [ map { { terms => [ map { {
		xorb => $_->[0]{hash}, start => $_->[1], end => $_->[2]
	} } @$_ ] } } @$files ],
		xorbs => [ map { { %$_, raw => '', bytes => '' } } @xorbs ] });
}

sub unreadable {
	my %n;

	$n{$t->get("/api/v1/files/$_")->{status}}++ for @_;
	delete $n{200};

	return join(' ', map { "$n{$_} times $_" } sort keys %n);
}
