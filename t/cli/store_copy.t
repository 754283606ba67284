#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet store copy copies a store from a folder to a bucket, and back, while the
# server runs.  Runs are killed, and meet uploads, deletions and other runs.
# Then the server switches to the bucket before the last uploads are copied.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collector;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp spew /;
use Test::Xet::S3;
use Test::Xet::S3Fault;

Test::Xet->folder('it begins with a folder');

my $t = Test::Xet->new(s3 => 0, workers => 2, log => 'info', timeout => 900);
my $s3 = Test::Xet::S3->new(dir => $t->dir() . '/s3');

if (my ($user) = Test::Xet::Nginx::user()) {
	chown((getpwnam($user))[2, 3], $s3->credentials());
}

$t->run();

my %pg = (env => { XET_POSTGRES => $t->conninfo() });
my $from = $t->store();
my $to = bucket('moved');

my %data = map { $_ => mix($_, 600_000 + $_) } 1 .. 6;
my %file = map { $_ => $t->upload($data{$_}, xorb_chunks => 2)->{hash} }
	1 .. 6;
my $n = rows();

cmp_ok($n, '>', 10, 'copies');

# --------------------------------------------------------------------------
# refused command lines

is(xet(undef, { %pg }, 'store', 'move')->{code}, 2, 'no such thing');
is(copy('--from', $from)->{code}, 2, 'without a target');
is(copy('--from', $from, '--to', $from)->{code}, 2, 'to itself');

symlink($from, $t->dir() . '/alias');
is(copy('--from', $from, '--to', $t->dir() . '/alias')->{code}, 2,
	'to itself by another name');

$s3->put('other/identity', 'f' x 32 . "\n");
like(copy('--from', $from, '--to', bucket('other'))->{err},
	qr/is a different store/, 'to another store');
$s3->put('marked/copying', 'f' x 32 . " 0123\n");
like(copy('--from', $from, '--to', bucket('marked'))->{err},
	qr/is the target of a copy from another store/,
	'to what will be another store');
$s3->put('used/something', 'x');
like(copy('--from', $from, '--to', bucket('used'))->{err},
	qr/is neither empty nor a store/, 'to what is no store');
mkdir($t->dir() . '/wrong');
like(copy('--from', $t->dir() . '/wrong', '--to', $to)->{err},
	qr/not the store of this database|no store identity/,
	'from what is not the store');
is_deeply([ objects('moved') ], [], 'nothing was written');

# --------------------------------------------------------------------------
# killed at any time: every copy in the target is intact, the next run copies
# the remaining ones, and no server accepts an incomplete target

my $killed = 0;

for my $i (1 .. 12) {
	my $run = xet_start(undef, { %pg }, 'store', 'copy', '--from', $from,
		'--to', $to, '--parallel', 2, '--rate', '1m');

	select(undef, undef, undef, 0.1 + rand(0.7));
	kill('KILL', $run->{pid});

	my $r = xet_wait($run);

	last if defined $r->{code} && $r->{code} == 0;
	$killed++;

	is_deeply([ wrong('moved') ], [], "killed $i: what is there is whole");
	ok(!exists $s3->objects('moved/')->{'moved/identity'},
		"killed $i: no identity")
		if objects('moved') < $n;
}

cmp_ok($killed, '>', 2, 'it was killed');

my $had = objects('moved');
my $r = copy('--from', $from, '--to', $to);

is($r->{code}, 0, 'to its end') or diag($r->{err});
is_deeply([ @{ $r->{json}[0] }{qw/ copies copied there lost /} ],
	[ $n, $n - $had, $had, 0 ], 'what was there is not copied again');
is($s3->get('moved/identity')->{body}, slurp("$from/identity"), 'identity');
ok(!exists $s3->objects('moved/')->{'moved/copying'}, 'no mark is left');
is_deeply([ same('moved') ], [ names() ], 'the copies of the store');

$r = copy('--from', $from, '--to', $to);
is_deeply([ @{ $r->{json}[0] }{qw/ copied there /} ], [ 0, $n ], 'once more');

# --------------------------------------------------------------------------
# the target is damaged; --check reads it

my ($first) = sort { $a cmp $b } objects('moved');
my $good = $s3->get("moved/$first")->{body};
my $bad = $good;

substr($bad, 100, 1) ^= "\x01";
$s3->put("moved/$first", $bad);

is(copy('--from', $from, '--to', $to)->{json}[0]{copied}, 0,
	'its size is right');
is(copy('--from', $from, '--to', $to, '--check')->{json}[0]{copied}, 1,
	'--check reads it');
ok($s3->get("moved/$first")->{body} eq $good, 'and it is whole again');

$s3->put("moved/$first", substr($bad, 1));
is(copy('--from', $from, '--to', $to)->{json}[0]{copied}, 1,
	'another size is seen');

# a damaged copy in the source is reported, and not copied

{
	my $path = "$from/$first";

	$s3->delete("moved/$first");
	spew($path, $bad);
	$r = copy('--from', $from, '--to', $to);
	is($r->{code}, 1, 'damage in the source');
	is($r->{json}[0]{lost}, 1, 'is told');
	like($r->{err}, qr/is damaged/, 'by name');
	ok(!exists $s3->objects('moved/')->{"moved/$first"}, 'not copied');

	unlink($path);
	$r = copy('--from', $from, '--to', $to);
	is_deeply([ $r->{code}, $r->{json}[0]{lost} ], [ 1, 1 ], 'missing');

	# if the disk of the source is not mounted, its copies are not reported
	# as lost

	rename("$from/identity", "$from/identity.away");
	is(copy('--from', $from, '--to', $to)->{code}, 3, 'without its disk');
	rename("$from/identity.away", "$from/identity");

	spew($path, $good);
	is(copy('--from', $from, '--to', $to)->{code}, 0, 'it is back');
}

# the disk of the source is unmounted during a run: missing copies are not
# reported as lost

{
	my $run = xet_start(undef, { %pg }, 'store', 'copy', '--from', $from,
		'--to', bucket('away'), '--parallel', 1, '--rate', '500k');
	my @disk = qw/ identity xorbs /;

	ok(wait_for(20, sub { objects('away') }), 'it has begun');
	mkdir("$from/away") or die $!;
	rename("$from/$_", "$from/away/$_") or die $! for @disk;

	$r = xet_wait($run);

	rename("$from/away/$_", "$from/$_") or die $! for @disk;
	rmdir("$from/away") or die $!;

	is($r->{code}, 3, 'the disk goes away') or diag($r->{err});
	like($r->{err}, qr/disk mounted/, 'and why');
	unlike($r->{err}, qr/is in neither store/, 'nothing is called lost');
}

# source and target are one bucket with two names: the run detects this by the
# mark that it writes

{
	my $fault = Test::Xet::S3Fault->new($s3);

	$r = copy('--from', $to, '--to', bucket('moved', $fault));
	is($r->{code}, 2, 'a bucket to itself');
	like($r->{err}, qr/source and target are the same store/, 'it says so');
	ok(!exists $s3->objects('moved/')->{'moved/copying'}, 'without a mark');
}

# --------------------------------------------------------------------------
# two concurrent runs, during uploads, deletions and a collector run

{
	my @runs = map { xet_start(undef, { %pg }, 'store', 'copy', '--json',
		'--from', $from, '--to', bucket('twice'), '--rate', '2m') }
		1, 2;

	for my $i (7 .. 12) {
		$data{$i} = mix($i, 300_000 + $i);
		$file{$i} = $t->upload($data{$i}, xorb_chunks => 2)->{hash};

		if ($i % 2) {
			is($t->http('DELETE', "/api/v1/files/$file{$i}",
				{})->{status} =~ /^20/ ? 1 : 0, 1,
				"deleted $i");
			is(collect($t, grace => '0s')->{code}, 0, 'collected');
			delete $file{$i};
		}
	}

	for my $run (@runs) {
		$r = xet_wait($run);
		is($r->{code}, 0, 'two at once') or diag($r->{err});
	}

	is_deeply([ wrong('twice') ], [], 'all of it is whole');

	$r = copy('--from', $from, '--to', bucket('twice'));
	is($r->{code}, 0, 'what came meanwhile');
	is_deeply([ grep { !exists $s3->objects('twice/')->{"twice/$_"} }
		names() ], [], 'all copies are there');
}

# --------------------------------------------------------------------------
# a xorb is healed while its copy is being copied: the row then has another copy
# id

{
	my $fault = Test::Xet::S3Fault->new($s3);
	my $xorb = send_xorb($t, mix(30, 200_000));
	my ($old) = $t->xorb_files($xorb->{hash});

	copy('--from', $from, '--to', bucket('healed'));
	send_xorb($t, mix(31, 200_000));
	$s3->delete('healed/' . ($old =~ s!^\Q$from\E/!!r));

	spew($old, 'damaged');

	my $hold = $fault->add(op => 'HEAD', do => 'wait', ms => 1500,
		match => $xorb->{hash}, count => 1);
	my $run = xet_start(undef, { %pg }, 'store', 'copy', '--json',
		'--from', $from, '--to', bucket('healed', $fault));

	ok(wait_for(20, sub { $fault->used($hold) }), 'it has read the row');
	send_xorb($t, $xorb->{raw});
	isnt($t->sql('SELECT lpad(to_hex(copy_id), 8, \'0\') FROM xet.xorbs'
		. " WHERE hash = '\\x" . plain_hash($xorb->{hash}) . "'"),
		substr($old, -8), 'an upload heals');

	$r = xet_wait($run);
	is($r->{code}, 0, 'healed meanwhile') or diag($r->{err}, $r->{out});

	my $copy_id = $t->sql("SELECT lpad(to_hex(copy_id), 8, '0')"
		. ' FROM xet.xorbs'
		. " WHERE hash = '\\x" . plain_hash($xorb->{hash}) . "'");

	ok(exists $s3->objects('healed/')->{'healed/xorbs/default/'
		. substr($xorb->{hash}, 0, 2) . "/$xorb->{hash}.$copy_id"},
		'the copy that the row names now') or diag($copy_id);
}

# --------------------------------------------------------------------------
# the switch: uploads after the last run are missing from the bucket; requests
# for them fail with store errors, until the next run copies them

is(copy('--from', $from, '--to', $to)->{code}, 0, 'the second run');

my $late = mix(40, 500_000);
my $window = $t->upload($late, xorb_chunks => 2)->{hash};

$t->{s3} = $s3;                         # for the location of data
$t->write_conf(undef, directives => { xet_store => $to . ' timeout=5s' });
$t->reload();
ok(wait_for(30, sub {
	my $r = $t->get("/api/v1/files/$window");
	return $r->{status} >= 500 || length($r->{body}) != length($late);
}), 'a late file is missing after the switch');
$t->allow(qr/./);

ok($t->get("/api/v1/files/$file{2}")->{body} eq $data{2},
	'earlier files are readable');

# an upload to the bucket; xorbs that are not in the bucket stay marked until
# the next run

my $fresh = mix(41, 400_000);
my $new = $t->upload($fresh, xorb_chunks => 2)->{hash};

cmp_ok($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'),
	'>', 0, 'missing xorbs are marked');

$r = copy('--from', $from, '--to', $to);
is($r->{code}, 0, 'the last run') or diag($r->{err});
cmp_ok($r->{json}[0]{copied}, '>', 0, 'copies the missing xorbs');
is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 0,
	'nothing is marked any more');

$file{$_->[0]} = $_->[1], $data{$_->[0]} = $_->[2]
	for [ late => $window, $late ], [ new => $new, $fresh ];

for my $i (sort keys %file) {
	my $d = $t->download($file{$i}, size => length($data{$i}));

	ok($d->{data} eq $data{$i}, "file $i by its ranges");
	ok($t->get("/api/v1/files/$file{$i}")->{body} eq $data{$i},
		"file $i as a whole");
}

is(xet(undef, { %pg }, 'verify', '--store', $to)->{code}, 0,
	'the bucket is whole');

$r = copy('--from', $from, '--to', $to);
is($r->{json}[0]{copied}, 0, 'there is nothing more');

# --------------------------------------------------------------------------
# the store is copied back, from the bucket to a folder

my $back = $t->dir() . '/back';

$r = copy('--from', $to, '--to', $back);
is($r->{code}, 0, 'back to a folder') or diag($r->{err});
is(xet(undef, { %pg }, 'verify', '--store', $back)->{code}, 0,
	'the folder is whole');
is_deeply([ glob("$back/tmp/*") ], [], 'nothing is left in tmp');

if ($> == 0) {
	my @root = map { (stat("$back/$_"))[4, 5] } '.', 'identity', 'tmp',
		'xorbs/default/00';

	is_deeply([ @root[2 .. $#root] ], [ (@root[0, 1]) x 3 ],
		'all of it belongs to the owner of the folder');
}

$t->done();


sub copy {
	return xet(undef, { %pg }, 'store', 'copy', '--json', @_);
}

sub bucket {
	my ($prefix, $at) = @_;

	return join(' ', $s3->url() . "/$prefix", 'endpoint='
		. ($at || $s3)->endpoint(), 'credentials=' . $s3->credentials(),
		'region=' . $s3->region(), 'path_style'
	);
}

sub rows { return $t->sql('SELECT count(*) FROM xet.xorbs') }

# Returns the names of copies, relative to the store or the prefix.

sub names {
	my @names = grep { !m!^(?:identity|tmp/)! } $t->files_in_store();

	@names = sort @names;

	return @names;
}

sub objects {
	my ($prefix) = @_;
	my @names = map { s!^\Q$prefix\E/!!r } grep { m!/xorbs/! }
		sort keys %{ $s3->objects("$prefix/") };

	return @names;
}

# Returns the number of copies that equal those in the folder, and the number of
# copies that differ.

sub same {
	my ($prefix) = @_;

	return grep { -e "$from/$_"
		&& $s3->get("$prefix/$_")->{body} eq slurp("$from/$_") }
		objects($prefix);
}

sub wrong {
	my ($prefix) = @_;

	return grep { -e "$from/$_"
		&& $s3->get("$prefix/$_")->{body} ne slurp("$from/$_") }
		objects($prefix);
}
