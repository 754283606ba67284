#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Rows never refer to a deleted file, xorb or repo, whatever program writes to
# the tables, and whichever of two concurrent transactions is first.  Triggers
# do what foreign keys would do.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ wait_for /;

my $t = Test::Xet->new();

$t->pg()->start();

my $n = 0;
my @sessions = map { $t->pg_session() } 0 .. 1;

# the rows of a new file, a new xorb and a new repo, whose ids are equal

my %delete = (
	file => 'DELETE FROM xet.files WHERE id = %d',
	xorb => 'DELETE FROM xet.xorbs WHERE id = %d',
	repo => 'DELETE FROM xet.repos WHERE id = %d'
);
my %insert = (
	place => 'INSERT INTO xet.repo_files (repo_id, file_id)'
		. ' VALUES (%1$d, %1$d)',
	term => 'INSERT INTO xet.file_xorbs (file_id, xorb_id)'
		. ' VALUES (%1$d, %1$d)'
);

# --------------------------------------------------------------------------
# nothing refers to what does not exist

for my $what (sort keys %insert) {
	like(refused($insert{$what}, 999), qr/ERROR/, "$what: nothing there");
}

rows();
$t->sql("UPDATE xet.files SET hash = NULL WHERE id = $n");
like(refused($insert{place}, $n), qr/XT003|deleted meanwhile/,
	'a deleted file is not added to a repo');

# --------------------------------------------------------------------------
# a row is inserted, then what it refers to is deleted

for (
	[ 'place', 'file', qr/\A\z/, 'repo_files' ],
	[ 'place', 'repo', qr/\A\z/, 'repo_files' ],
	[ 'term', 'file', qr/\A\z/, 'file_xorbs' ],
	[ 'term', 'xorb', qr/a file refers to the xorb/, undef ]
) {
	my ($row, $gone, $answer, $table) = @$_;

	rows();
	race($insert{$row}, $delete{$gone}, $answer, "$row, then no $gone");
	is(dangling(), 0, "$row, then no $gone: no row is left over");
	is($t->sql("SELECT count(*) FROM xet.$table WHERE file_id = $n"), 0,
		"$row, then no $gone: the row is gone, too") if $table;
}

# what it refers to is deleted, then a row is inserted

for (
	[ 'file', 'place', qr/deleted meanwhile/ ],
	[ 'repo', 'place', qr/no rows/ ],
	[ 'file', 'term', qr/does not exist/ ],
	[ 'xorb', 'term', qr/does not exist/ ]
) {
	my ($gone, $row, $answer) = @$_;

	rows();
	race($delete{$gone}, $insert{$row}, $answer, "no $gone, then $row");
	is(dangling(), 0, "no $gone, then $row: no row is left over");
}

# --------------------------------------------------------------------------
# a deletion removes all rows that refer to what is deleted

rows();
$t->sql(<<EOF);
INSERT INTO xet.chunks (hash, xorb_id, idx) VALUES (sha256('c'), $n, 0);
INSERT INTO xet.xorb_repos (xorb_id, repo_id) VALUES ($n, $n);
INSERT INTO xet.xorb_subjects (xorb_id, subject, chunks)
VALUES ($n, sha256('me'), '{[0,)}');
INSERT INTO xet.charges (xorb_id, repo_id, bytes) VALUES ($n, $n, 7);
INSERT INTO xet.hub_loose (repo_id, file_id) VALUES ($n, $n);
EOF
$t->sql(sprintf($insert{place}, $n));
is(usage(), '7|5|1', 'the bytes are counted');
$t->sql(sprintf($delete{file}, $n));
is(usage(), '7|0|0', 'without the file');
$t->sql(sprintf($delete{repo}, $n));
is(dangling(), 0, 'without the repo: no row is left over');
$t->sql(sprintf($delete{xorb}, $n));
is(usage(), '0|0|0', 'without the xorb');
is(dangling(), 0, 'without the xorb: no row is left over');

# --------------------------------------------------------------------------
# a file gets the visibility of its repo

for my $kind (qw/ public listed /) {
	rows();
	$t->sql("UPDATE xet.repos SET $kind = true WHERE id = $n");
	$t->sql(sprintf($insert{place}, $n));
	is($t->sql("SELECT ${kind}_file FROM xet.repo_files"
		. " WHERE file_id = $n"), $n, "$kind: as the repo");
}

# a snapshot that is older than the lock would not see all rows

for my $gone (sort keys %delete) {
	rows();
	like(refused('BEGIN ISOLATION LEVEL REPEATABLE READ; '
		. $delete{$gone}, $n), qr/must be read committed/,
		"$gone: another isolation is refused");
}

$_->close() for @sessions;
$t->done();

# --------------------------------------------------------------------------

# Inserts a file, a xorb and a repo with the id ++$n.

sub rows {
	$n++;

	$t->sql(<<EOF);
INSERT INTO xet.files (id, hash, size, term_count, packed)
OVERRIDING SYSTEM VALUE
VALUES ($n, sha256('file $n'), 5, 0, '');
INSERT INTO xet.xorbs (id, hash, chunk_count, raw_size, stored_size,
                       chunk_hashes, raw_ends, stored_ends)
OVERRIDING SYSTEM VALUE
VALUES ($n, sha256('xorb $n'), 1, 5, 6, sha256('chunk $n'), '\\x05000000',
        '\\x06000000');
INSERT INTO xet.repos (id, name) OVERRIDING SYSTEM VALUE
VALUES ($n, 'repo $n');
EOF
}

# Runs two statements in two sessions: the second one waits for the first one.

sub race {
	my ($first, $second, $answer, $name) = @_;

	$sessions[0]->run('BEGIN; ' . sprintf($first, $n));
	$sessions[1]->send(sprintf($second, $n));

	ok(wait_for(10, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE wait_event_type = 'Lock'") == 1 }), "$name: waits");

	$sessions[0]->run('COMMIT');
	like($sessions[1]->wait(), $answer, "$name: the answer");
}

sub refused {
	my ($statement, $id) = @_;

	my $session = $t->pg_session();

	$session->send(sprintf($statement, $id));

	my $answer = $session->wait();

	$session->close();

	return $answer;
}

# Returns the number of rows that refer to rows that do not exist.

sub dangling {
	return $t->sql(<<'EOF');
SELECT count(*)
  FROM (SELECT file_id, NULL AS xorb_id, repo_id FROM xet.repo_files
        UNION ALL SELECT file_id, xorb_id, NULL FROM xet.file_xorbs
        UNION ALL SELECT NULL, xorb_id, NULL FROM xet.chunks
        UNION ALL SELECT NULL, xorb_id, repo_id FROM xet.xorb_repos
        UNION ALL SELECT NULL, xorb_id, NULL FROM xet.xorb_subjects
        UNION ALL SELECT NULL, xorb_id, NULL FROM xet.charges
        UNION ALL SELECT NULL, NULL, repo_id FROM xet.hub_loose) r
 WHERE file_id NOT IN (SELECT id FROM xet.files)
    OR xorb_id NOT IN (SELECT id FROM xet.xorbs)
    OR repo_id NOT IN (SELECT id FROM xet.repos)
EOF
}

sub usage {
	return $t->sql('SELECT sum(stored), sum(logical), sum(files) FROM'
		. " xet.usage WHERE owner = int8send($n)");
}
