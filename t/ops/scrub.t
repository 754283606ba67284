#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The scrub finds damage before a client does, and marks no intact xorbs.
# Marked xorbs are healed from a peer's folder, if its copy is exactly this
# xorb.  Both jobs do nothing if the store is not the store of this database.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ slurp spew /;

use File::Path qw/ make_path /;
use Time::HiRes ();

my $t = Test::Xet->new(workers => 2, log => 'info',
	directives => { xet_scrub => 'on rate=1g interval=1s' },
	server => 'location = /metrics { xet_metrics; }');

$t->run();
$t->allow(qr/xet: xorb \S+ is damaged and treated as not stored/);

my $seed = 100;
my $dir = $t->dir();

sub fresh {
	my %o = @_;
	my $data = mix(++$seed, 100_000);
	my $x = send_xorb($t, $data, scheme => 'none', sizes => [ 8192 ]);

	return { x => $x, data => $data,
		file => $o{file} ? register_file($t, [ [ $x ] ]) : undef };
}

sub copy { return $t->copy($_[0]{x}{hash}) }
sub path { return $t->store() . '/' . copy(@_) }

# Copies the xorb to the second peer.

sub keep {
	my ($f) = @_;
	my $copy = copy($f);

	make_path("$dir/backup/" . $copy =~ s!/[^/]*\z!!r);
	spew("$dir/backup/$copy", $t->copy_bytes($copy));
}

# Converts a hash string to the hex digits of the hash's bytes, or these digits
# to the hash string: reverses each group of eight bytes.

sub bytes_of {
	return join('', map { unpack('H*', reverse(pack('H*', $_))) }
		unpack('(a16)4', $_[0]));
}

sub marked {
	return join(' ', sort map { bytes_of($_) }
		$t->sql("SELECT encode(hash, 'hex') FROM xet.xorbs"
			. ' WHERE damaged_at IS NOT NULL'));
}

sub row_of { return "hash = '\\x" . bytes_of($_[0]{x}{hash}) . "'" }

sub flip {
	my ($copy, $at) = @_;

	$t->flip_copy($copy, $at // 5000);
}

sub cut {
	my ($copy) = @_;

	$t->cut_copy($copy, length($t->copy_bytes($copy)) - 100);
}

sub figure {
	my ($chore, $name) = @_;

	return $t->sql("SELECT coalesce((totals->>'$name')::bigint, 0)"
		. " FROM xet.jobs_show() WHERE name = '$chore'") || 0;
}

# Requests a run of a job, and waits until it ends.

sub run_of {
	my ($chore) = @_;

	my $now = $t->sql('SELECT clock_timestamp()');

	$t->sql("SELECT xet.job_now('$chore')");

	return wait_for(60, sub {
		$t->sql("SELECT count(*) FROM xet.jobs WHERE name = '$chore'"
			. " AND started_at > '$now' AND cursor IS NULL") == 1
	});
}

sub proven {
	my ($name) = @_;

	my $r = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
		'verify', '--store', $t->conf_store(), '--json');

	is_deeply([ $r->{code}, $r->{json}[-1]{faults} ], [ 0, 0 ],
		"$name: rows describe their files")
		or diag($r->{out}, $r->{err});
}

# --------------------------------------------------------------------------
# the scrub finds damaged copies, and reports no intact copies

my @good = map { fresh() } 1 .. 4;

ok(run_of('scrub'), 'a run over an intact store');
is(marked(), '', 'nothing is marked');
ok(figure('scrub', 'bytes') >= 400_000, 'its bytes are counted');

# a run consists of many thread jobs, and none of them is left when the run
# ends; a worker reports their number every second

my $m;

sleep(3);

ok(wait_for(60, sub {
	$m = metrics($t);

	return $m->{'xet_jobs_total{pool="read"}'} > 1
		&& $m->{'xet_jobs_waiting{pool="read"}'} == 0
		&& $m->{'xet_job_oldest_seconds{pool="read"}'} == 0;
}), 'its jobs have ended')
	or diag(map { "$_ $m->{$_}\n" } grep { /^xet_job/ } sort keys %$m);

my @bad = map { fresh() } 1 .. 3;

flip(copy($bad[0]));
cut(copy($bad[1]));
$t->remove_copy(copy($bad[2]));

my $want = join(' ', sort map { $_->{x}{hash} } @bad);

ok(wait_for(60, sub { marked() eq $want }),
	'flipped, cut, removed: found without a client');
ok(run_of('scrub'), 'one more pass');
is(marked(), $want, 'nothing else is marked');
is(figure('scrub', 'damaged'), 3, 'each is counted once');

my $log = $t->log();

like($log, qr/\Q$bad[0]{x}{hash}\E\S* is damaged.*: its file has other content/,
	'logged: flipped');

# in a bucket, missing and truncated copies are reported alike

my $size = 'it is missing or has another size';

like($log, qr/\Q$bad[1]{x}{hash}\E\S* is damaged.*: @{[ $t->s3() ? $size
	: 'its file has another size' ]}/, 'logged: cut');
like($log, qr/\Q$bad[2]{x}{hash}\E\S* is damaged.*: @{[ $t->s3() ? $size
	: 'its file is missing' ]}/, 'logged: removed');

is($t->head("/api/v1/xorbs/default/$bad[0]{x}{hash}")->{status}, 404,
	'marked xorbs count as unknown');

is($t->post("/api/v1/xorbs/default/$_->{x}{hash}", \$_->{x}{bytes})->{status},
	200, 'an upload heals it') for @bad;
is(marked(), '', 'all are healed by uploads');

# an unreadable copy is not damage, and does not stop a run

SKIP: {
	skip 'an object has no rights', 8 if $t->s3();
	skip 'rights do not hold for this user', 8
		if $> == 0 && !Test::Xet::Nginx::user();

	my $behind = fresh();
	my $path = path($good[1]);

	$t->allow(qr/xet: open "\Q$path\E" failed/);
	chmod(0000, $path);
	flip(copy($behind));

	ok(wait_for(60, sub { marked() eq $behind->{x}{hash} }),
		'damage behind a copy that can not be read');
	is(marked(), $behind->{x}{hash}, 'which is not marked itself');
	ok(figure('scrub', 'unread') > 0, 'it is counted');

	chmod(0644, $path);
	$t->post("/api/v1/xorbs/default/$behind->{x}{hash}",
		\$behind->{x}{bytes});

	# more consecutive unreadable copies than the scrub skips in one step:
	# it waits, retries, and then skips them

	my $was = $seed;

	$seed = 5000;

	my @many = map { fresh() } 1 .. 20;

	$behind = fresh();
	$seed = $was;
	$t->allow(map { my $p = path($_); qr/xet: open "\Q$p\E" failed/ }
		@many);
	chmod(0000, path($_)) for @many;
	flip(copy($behind));

	my $unread = figure('scrub', 'unread');

	ok(wait_for(60, sub {
		$t->log() =~ /several consecutive copies can't be/
	}), 'many: it waits');
	ok(wait_for(120, sub { marked() eq $behind->{x}{hash} }),
		'many: and gets past them');
	ok(wait_for(30, sub { figure('scrub', 'unread') - $unread >= 20 }),
		'many: they are counted');

	chmod(0644, path($_)) for @many;
	ok(run_of('scrub'), 'many: the next run reads them');
	is(marked(), $behind->{x}{hash}, 'many: none of them is marked');
	$t->post("/api/v1/xorbs/default/$behind->{x}{hash}",
		\$behind->{x}{bytes});
}

# rows from before checksums existed: copy id 0, which is not in the file name

{
	my @old = map { fresh() } 1 .. 3;

	for my $old (@old) {
		my $copy = copy($old);
		my ($plain) = $copy =~ /^(.*)\.[0-9a-f]{8}$/ or die $copy;

		$t->sql('UPDATE xet.xorbs SET copy_id = 0, digest = NULL WHERE '
			. row_of($old));
		$t->put_copy($plain, $t->copy_bytes($copy));
		$t->remove_copy($copy);
		$old->{copy} = $plain;
	}

	flip($old[1]{copy});

	# an intact xorb that does not match its row: its chunks have different
	# offsets

	my $other = make_xorb($old[2]{data}, scheme => 'lz4',
		sizes => [ 8192 ]);

	$t->put_copy($old[2]{copy}, $other->{bytes});
	$t->sql('UPDATE xet.xorbs SET stored_size = '
		. length($other->{bytes}) . ' WHERE ' . row_of($old[2]));

	my $want = join(' ', sort map { $_->{x}{hash} } @old[1, 2]);

	ok(wait_for(60, sub { marked() eq $want }), 'without a digest: found')
		or diag(marked());
	ok(run_of('scrub'), 'without a digest: another pass');
	is(marked(), $want, 'without a digest: the whole one is not marked');
	$t->post("/api/v1/xorbs/default/$_->{x}{hash}", \$_->{x}{bytes})
		for @old;
	is(marked(), '', 'without a digest: healed by uploads');
}

# --------------------------------------------------------------------------
# a row that is deleted while its copy is read is not damage

{
	my $gone = fresh();
	my $alerts = () = $t->log() =~ /\[alert\]/g;
	my $before = figure('scrub', 'damaged');

	# an UPDATE waits for this lock, and a SELECT does not

	my $lock = $t->pg_lock('xet.xorbs', 'SHARE ROW EXCLUSIVE');

	$t->remove_copy(copy($gone));
	ok(wait_for(60, sub { $t->pg_blocked() }), 'the mark waits');
	$lock->run('DELETE FROM xet.xorbs WHERE ' . row_of($gone));
	$lock->run('COMMIT');

	ok(run_of('scrub'), 'deleted meanwhile: the run continues');
	is(figure('scrub', 'damaged'), $before, 'deleted meanwhile: no damage');
	is(scalar(() = $t->log() =~ /\[alert\]/g), $alerts,
		'deleted meanwhile: no alert');
}

# --------------------------------------------------------------------------
# the store disappears in the middle of a run

{
	$t->allow(qr/xet: the \w+ ".*" is not the store of this database/,
		qr/xet: open ".*" failed/);

	$t->hide_store();

	ok(wait_for(60, sub { $t->sql("SELECT note FROM xet.jobs_show()"
		. " WHERE name = 'scrub'") =~ /does not belong/ }),
		'another folder: the pass waits, and says why');
	like($t->log(), qr/job "scrub" is waiting: the store does not/,
		'another folder: logged');
	is(marked(), '', 'another folder: nothing is marked');

	my $told = () = $t->log() =~ /job "scrub" is waiting/g;
	my $turn = $t->sql("SELECT turn FROM xet.jobs WHERE name = 'scrub'");

	ok(wait_for(60, sub { $t->sql("SELECT turn FROM xet.jobs"
		. " WHERE name = 'scrub'") > $turn + 1 }),
		'another folder: tried again');
	is(scalar(() = $t->log() =~ /job "scrub" is waiting/g), $told,
		'another folder: logged once');

	$t->show_store();

	ok(run_of('scrub'), 'the folder is back: the run continues');
	is(marked(), '', 'the folder is back: nothing is marked');
}

proven('so far');

# --------------------------------------------------------------------------
# an intact xorb that is marked as damaged

{
	my $f = $good[0];

	$t->sql('UPDATE xet.xorbs SET damaged_at = now() WHERE ' . row_of($f));
	ok(wait_for(90, sub { marked() eq '' }), 'a wrong mark is removed');
	like($t->log(), qr/\Q$f->{x}{hash}\E\S* is intact and available again/,
		'a wrong mark: logged');
	is(figure('heal', 'whole'), 1, 'a wrong mark: counted');
}

# --------------------------------------------------------------------------
# two peers: the first peer has bad copies, the second peer is a copy of the
# store

my @healing = map { fresh(file => 1) } 1 .. 6;

$t->save_store("$dir/backup");
mkdir("$dir/liar");

# Writes a bad copy.  The first peer has five bad copies of xorb 0: damaged, of
# another xorb, truncated, too long, and empty.  Its copies of xorb 1 are a fifo
# and a folder.

sub lie {
	my ($f, $copy_id, $bytes) = @_;
	my $aa = substr($f->{x}{hash}, 0, 2);

	system('mkdir', '-p', "$dir/liar/xorbs/default/$aa");
	my $path = "$dir/liar/xorbs/default/$aa/$f->{x}{hash}.$copy_id";

	spew($path, $bytes) if defined $bytes;

	return $path;
}

{
	my $bytes = $healing[0]{x}{bytes};
	my $flipped = $bytes;

	substr($flipped, 5000, 1) ^= "\1";
	lie($healing[0], '00000001', $flipped);
	lie($healing[0], '00000002', $healing[1]{x}{bytes});
	lie($healing[0], '00000003', substr($bytes, 0, -1));
	lie($healing[0], '00000004', $bytes . 'more');
	lie($healing[0], '00000005', '');

	system('mkfifo', lie($healing[1], '00000001'));
	mkdir(lie($healing[1], '00000002'));

	# xorb 2, in another encoding: only the first peer has it

	my $other = make_xorb($healing[2]{data}, scheme => 'lz4',
		sizes => [ 8192 ]);

	lie($healing[2], '00000001', $other->{bytes});
	unlink(glob("$dir/backup/xorbs/default/*/$healing[2]{x}{hash}*"))
		or die;

	# xorb 3, with the footer that old clients write

	my $footer = make_xorb($healing[3]{data}, scheme => 'none',
		sizes => [ 8192 ], footer => 'v1');

	lie($healing[3], '00000001', $footer->{bytes});

	# neither peer has xorb 5

	unlink(glob("$dir/backup/xorbs/default/*/$healing[5]{x}{hash}*"))
		or die;
}

system('chmod', '-R', 'a+rX', "$dir/liar", "$dir/backup");

$t->allow(qr/xet: read ".*" failed/);
$t->write_conf(undef, directives => {
	xet_scrub => 'on rate=1g interval=1s',
	xet_store_peer => "$dir/liar; xet_store_peer $dir/backup"
});
$t->reload();

my %before = map { $_->{x}{hash} => copy($_) } @healing;

flip(copy($_)) for @healing[0, 2];
cut(copy($_)) for $healing[1];
$t->remove_copy(copy($_)) for @healing[3, 4, 5];

my $start = $t->log_size();

ok(wait_for(120, sub {
	figure('heal', 'healed') >= 5 && marked() eq $healing[5]{x}{hash}
}), 'healed from peers, but for what no peer has')
	or diag(marked(), "\n", figure('heal', 'healed'));

for my $i (0 .. 4) {
	my $f = $healing[$i];
	my @files = $t->copies($f->{x}{hash});

	is(scalar(@files), 1, "peer: $i: one file");
	isnt($files[0], $before{$f->{x}{hash}}, "peer: $i: of another name");
	ok($t->get("/api/v1/files/$f->{file}{hash}")->{body} eq $f->{data},
		"peer: $i: GET");

	my $d = $t->download($f->{file}{hash}, size => length($f->{data}));

	is_deeply($d->{errors}, [], "peer: $i: plan and data URLs");
}

like($t->log($start), qr/liar\S*\Q$healing[0]{x}{hash}\E\.0000000$_" of a peer/,
	"peer: lie $_ is not taken") for 1 .. 5;
like($t->log($start), qr/\Q$healing[0]{x}{hash}\E was repaired from "\S*backup/,
	'peer: healed from the second one');
like($t->log($start), qr/\Q$healing[2]{x}{hash}\E was repaired from "\S*liar/,
	'peer: healed from another encoding');
like($t->log($start),
	qr/\Q$healing[5]{x}{hash}\E\S* is damaged and could not be fetched/,
	'peer: a xorb without a source is logged');
is($t->sql('SELECT tries FROM xet.heals h JOIN xet.xorbs x ON x.id = h.xorb_id'
	. ' AND h.copy_id = x.copy_id WHERE ' . row_of($healing[5])), 1,
	'peer: what nobody has is tried again later');

$t->post("/api/v1/xorbs/default/$healing[5]{x}{hash}",
	\$healing[5]{x}{bytes});
is(marked(), '', 'all is healed');
proven('healed');

# --------------------------------------------------------------------------
# an upload of the same xorb during a heal: a row lock makes both heals wait,
# and on a slow machine they give up

for my $round (1 .. 3) {
	my $f = fresh(file => 1);
	my $before = figure('heal', 'healed');

	keep($f);

	my $row = $t->pg_session();

	$row->run('BEGIN');
	$row->run('UPDATE xet.xorbs SET damaged_at = now() WHERE '
		. row_of($f));
	flip(copy($f));
	$row->run('COMMIT');
	$row->run('BEGIN');
	$row->run('SELECT 1 FROM xet.xorbs WHERE ' . row_of($f)
		. ' FOR UPDATE');

	my $name = "beside an upload, $round";

	$t->sql("SELECT xet.job_now('heal')");
	ok(wait_for(60, sub { $t->pg_blocked() }), "$name: the heal waits");

	my $bytes = $f->{x}{bytes};
	my $c = $t->http_start('POST', "/api/v1/xorbs/default/$f->{x}{hash}",
		{ 'Content-Length' => length($bytes) }, $bytes);

	wait_for(5, sub { $t->pg_blocked() > 1 })
		or diag("$name: the upload did not meet it");
	$row->run('COMMIT');

	my $r = $c->response('POST', timeout => 60);

	like($r->{status}, qr/^(?:200|503)$/, "$name: the upload")
		or diag($r->summary());
	$c->close();

	ok(wait_for(90, sub { marked() eq '' }), "$name: healed");
	ok(run_of('heal'), "$name: another run");
	is(scalar($t->copies($f->{x}{hash})), 1, "$name: one file");
	ok($t->get("/api/v1/files/$f->{file}{hash}")->{body} eq $f->{data},
		"$name: GET");
}

# the row is deleted while a heal waits for its lock: the new copy is removed

{
	my $f = fresh();
	my $old = copy($f);

	keep($f);

	my $row = $t->pg_session();

	$row->run('UPDATE xet.xorbs SET damaged_at = now() WHERE '
		. row_of($f));
	flip($old);
	$row->run('BEGIN');
	$row->run('SELECT 1 FROM xet.xorbs WHERE ' . row_of($f)
		. ' FOR UPDATE');
	$t->sql("SELECT xet.job_now('heal')");
	ok(wait_for(60, sub { $t->copies($f->{x}{hash}) == 2
		&& $t->pg_blocked() }), 'a row that goes: the heal waits');
	$row->run('DELETE FROM xet.xorbs WHERE ' . row_of($f));
	$row->run('COMMIT');
	ok(wait_for(30, sub { "@{[ $t->copies($f->{x}{hash}) ]}" eq $old }),
		'a row that goes: the copy of the heal goes');
	$t->remove_copy($old);
}

proven('beside uploads');

# --------------------------------------------------------------------------
# the rate is kept, approximately

{
	my $data = random_bytes(++$seed, 1_500_000);

	send_xorb($t, $data, sizes => [ 65536 ]);

	my $size = $t->sql('SELECT sum(stored_size) FROM xet.xorbs');

	$t->write_conf(undef, directives => {
		xet_scrub => 'on rate=256k interval=1s' });
	$t->reload();

	my $under_way = sub { $t->sql('SELECT cursor IS NOT NULL'
		. " FROM xet.jobs WHERE name = 'scrub'") eq 't' };

	ok(wait_for(90, sub { !$under_way->() }), 'the last pass ends');
	$t->sql("SELECT xet.job_now('scrub')");
	ok(wait_for(30, $under_way), 'a slow pass begins');
	ok(wait_for(120, sub { !$under_way->() }), 'a slow pass ends');

	my $took = $t->sql("SELECT extract(epoch FROM finished_at - started_at)"
		. " FROM xet.jobs WHERE name = 'scrub'");

	cmp_ok($took, '>', $size / 262144 * 0.6,
		'it takes as long as the rate says');
}

$t->done();
