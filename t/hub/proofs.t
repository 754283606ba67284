#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The SHA-256 of many small files of a commit, which the server reads like one
# file, and of a file between them that is large, fragmented, damaged, repaired,
# or not what the commit says.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ wait_for /;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1);

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();

is($t->post('/api/repos/create', '{"name":"m"}')->{status}, 200, 'a repo');

my $cas = { Authorization => 'Bearer ' . $t->get(
	'/api/models/me/m/xet-write-token/main')->json()->{accessToken} };
my $seed = 0;

# --------------------------------------------------------------------------
# batches are limited in terms and in bytes; files of several xorbs, one chunk,
# and more terms than a row has

my @files = (chunks(24 << 20), upload(40 << 20), upload(1, 70_000),
	fragmented(700), chunks(2 << 20));

my $r = commit(@files)->response();

is($r->{status}, 200, scalar(@files) . ' files') or diag($r->summary());
is(proven(@files), different(@files), 'all are proven');
is($t->sql('SELECT count(*) FROM xet.hub_proofs'), 0, 'none is being read');
is($t->get("/me/m/resolve/main/$_->{path}")->{body} eq $_->{data}, 1,
	"$_->{path} is as it was") for @files[0, 7, -1];

# --------------------------------------------------------------------------
# one claim of many is false

@files = (chunks(8 << 20))[0 .. 39];
lie($files[20]);

$r = commit(@files)->response();
is($r->{status}, 400, 'one of forty claims is false');
like($r->{body}, qr/\Q$files[20]{path}\E/, 'the response names it');
is(proven(@files), different(@files), 'all forty are proven');
is($t->sql('SELECT sum(bytes) FROM xet.hub_vain'), length($files[20]{data}),
	'only this file was read in vain');
is(commit(@files[0 .. 19, 21 .. 39])->response()->{status}, 200,
	'the other ones');

# --------------------------------------------------------------------------
# a damaged xorb of one of the files

@files = (upload(2000), my $bad = upload(300_000), upload(2001));

my $copy = $t->xorb_file($bad->{xorb}{hash});
my $bytes = -s $copy;

truncate($copy, $bytes / 2) or die "$copy: $!\n";
$t->allow(qr/xet: .*can't be read/);

$r = commit(@files)->response();
is($r->{status}, 500, 'a damaged xorb');
is(proven(@files), 0, 'nothing is proven');

is($t->post("/cas/v1/xorbs/default/$bad->{xorb}{hash}",
	\$bad->{xorb}{bytes}, $cas)->{status}, 200, 'the xorb again');
$r = commit(@files)->response();
is($r->{status}, 200, 'it is repaired') or diag($r->summary());

# --------------------------------------------------------------------------
# a client that goes away

@files = (upload(2000), upload(100 << 20));

my $c = commit(@files);

wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.hub_proofs') });
$c->close();
wait_for(20, sub { !$t->sql('SELECT count(*) FROM xet.hub_proofs') });
is($t->sql('SELECT count(*) FROM xet.hub_staged'), 0, 'nothing is staged');

is(commit(@files)->response()->{status}, 200, 'the same again');

# --------------------------------------------------------------------------
# another client of the repo claims a false SHA-256 for the file while the
# server reads it, and another tenant's client does so for its own repo

is($t->post('/api/repos/create', '{"name":"n"}')->{status}, 200, 'a repo');

my $theirs = { Authorization => 'Bearer ' . $t->get(
	'/api/models/me/n/xet-write-token/main')->json()->{accessToken} };

@files = upload(100 << 20);
$c = commit(@files);
wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.hub_proofs') });

my @said;

for my $who ($cas, $theirs) {
	my $s = make_shard({ files => [ { sha256 => sha256_hex('false'),
		verification => JSON::PP::true,
		terms => $files[0]{terms} } ], xorbs => $files[0]{xorbs} });

	push @said, $t->post('/cas/v1/shards', \$s->{bytes}, $who)->{status};
}

is("@said", '200 200', 'both know the file');

$r = $c->response();
is($r->{status}, 200, 'the true claim is committed') or diag($r->summary());
is(proven(@files), 1, 'the SHA-256 is that of the bytes');
is($t->sql('SELECT count(*) FROM xet.files WHERE sha256_proven'
	. " AND sha256 = sha256('false')"), 0, 'the false one is nowhere');

my $false = { path => 'f/false', sha256 => sha256_hex('false'),
	data => $files[0]{data} };

is(commit($false)->response()->{status}, 400, 'it can\'t be committed');

my $other = body($false);

is($t->post('/api/models/me/n/commit/main', \$other)->{status}, 400,
	'nor by the other tenant');
is($t->head("/me/m/resolve/main/$files[0]{path}")
	->header_value('X-Linked-Etag'), "\"$files[0]{sha256}\"",
	'the file has its own');

# --------------------------------------------------------------------------
# more files than one look at the claims returns; one claim of them is false

@files = windows(100, 60);
cmp_ok(@files, '>', 4096, scalar(@files) . ' files of a xorb');

my $lie = $files[4200];

lie($lie);

$r = commit(@files)->response();
is($r->{status}, 400, 'one of these claims is false');
like($r->{body}, qr/\Q$lie->{path}\E/, 'the response names it');
cmp_ok(proven(@files), '>=', 4096, 'the files of the first look are proven');

splice(@files, 4200, 1);
$r = commit(@files)->response();
is($r->{status}, 200, 'without it') or diag($r->summary());

@files = windows(100, 60);
$r = commit(@files)->response();
is($r->{status}, 200, 'all claims are true') or diag($r->summary());
is(proven(@files), scalar @files, 'all are proven again');
is($t->sql('SELECT count(*) FROM xet.hub_proofs'), 0, 'no file is being read');

# --------------------------------------------------------------------------
# PostgreSQL crashes after a part of the operations is staged: the commit is
# refused, not made in part, and the next try succeeds

@files = @files[0 .. 1499];
$_->{path} =~ s!^f/!crash/! for @files;

my $text = body(@files);
my $half = rindex($text, "\n", length($text) * 0.9) + 1;

$c = $t->http_start('POST', '/api/models/me/m/commit/main', {
	'Content-Length' => length($text) }, substr($text, 0, $half),
	timeout => 60);
ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.hub_staged') }),
	'a part is staged');
$t->pg_restart('immediate');
is($t->sql('SELECT count(*) FROM xet.hub_staged'), 0,
	'a crash empties the table');
$c->send(substr($text, $half));

$r = $c->response();
is($r->{status}, 503, 'the commit is refused') or diag($r->summary());
ok($r->header_value('Retry-After'), 'the client may try again');
is($t->sql("SELECT count(*) FROM xet.hub_paths WHERE path LIKE 'crash/%'"), 0,
	'nothing is committed');

$r = commit(@files)->response();
is($r->{status}, 200, 'the same again') or diag($r->summary());
is($t->sql('SELECT count(*) FROM xet.hub_paths'
	. " WHERE path LIKE 'crash/%' AND hash IS NOT NULL"), 1500,
	'all files are committed');

$t->done();

# --------------------------------------------------------------------------

# Uploads a xorb of this size, and registers each of its chunks as a file.

sub chunks {
	my ($size) = @_;

	my $data = mix(++$seed, $size);
	my $xorb = make_xorb($data);
	my $r = $t->post("/cas/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes}, $cas);
	my ($at, @made) = (0);

	die $r->summary() if $r->{status} != 200;

	for (@{ $xorb->{chunks} }) {
		my $one = substr($data, $at, $_->{raw_length});

		push @made, { data => $one, xorb => $xorb,
			sha256 => sha256_hex($one) };
		$at += $_->{raw_length};
	}

	return register(\@made, [ map { { xorbs => $_ ? [] : [ $xorb ],
		terms => [ { xorb => $xorb->{hash}, start => $_,
			end => $_ + 1 } ] } } 0 .. $#made ]);
}

# Uploads files of these sizes, each with its own xorbs.

sub upload {
	my (@sizes) = @_;

	my (@made, @shard);
	my @data = map { mix(++$seed, $_) } @sizes;

	for my $data (@data) {
		my @xorbs = map { make_xorb($_) } unpack('(a33554432)*', $data);

		for (@xorbs) {
			my $r = $t->post("/cas/v1/xorbs/default/$_->{hash}",
				\$_->{bytes}, $cas);

			die $r->summary() if $r->{status} != 200;
		}

		push @made, { data => $data, xorb => $xorbs[0],
			sha256 => sha256_hex($data) };
		push @shard, { xorbs => \@xorbs, terms => [ map { {
			xorb => $_->{hash}, start => 0,
			end => scalar @{ $_->{chunks} } } } @xorbs ] };
	}

	return register(\@made, \@shard);
}

# Uploads a xorb of this many chunks of 1 KB, and registers each run of up to
# "most" chunks as a file.

sub windows {
	my ($chunks, $most) = @_;

	my $data = random_bytes(++$seed, $chunks * 1000);
	my $xorb = make_xorb($data, sizes => [ 1000 ]);
	my $r = $t->post("/cas/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes}, $cas);
	my (@made, @shard);

	die $r->summary() if $r->{status} != 200;

	for my $n (1 .. $most) {
		for my $start (0 .. $chunks - $n) {
			my $part = substr($data, 1000 * $start, 1000 * $n);

			push @made, { data => $part, xorb => $xorb,
				sha256 => sha256_hex($part) };
			push @shard, { xorbs => @shard ? [] : [ $xorb ],
				terms => [ { xorb => $xorb->{hash},
				start => $start, end => $start + $n } ] };
		}
	}

	return register(\@made, \@shard);
}

# A file with many terms of one chunk.

sub fragmented {
	my ($terms) = @_;

	my ($xorb) = map { $_->{xorb} } upload(400_000);
	my $one = mix($seed, 400_000);
	my @order = map { 2 * $_ % @{ $xorb->{chunks} } } 1 .. $terms;
	my $data = '';
	my @offsets = (0);

	push @offsets, $offsets[-1] + $_->{raw_length}
		for @{ $xorb->{chunks} };
	$data .= substr($one, $offsets[$_], $offsets[$_ + 1] - $offsets[$_])
		for @order;

	return register([ { data => $data, xorb => $xorb,
		sha256 => sha256_hex($data) } ], [ { xorbs => [ $xorb ],
		terms => [ map { { xorb => $xorb->{hash}, start => $_,
			end => $_ + 1 } } @order ] } ]);
}

sub register {
	my ($made, $shard) = @_;

	my $s = make_shard({ files => [ map { { sha256 => $made->[$_]{sha256},
		verification => JSON::PP::true, terms => $shard->[$_]{terms} } }
		0 .. $#$made ],
		xorbs => [ map { @{ $_->{xorbs} } } @$shard ] });
	my $r = $t->post('/cas/v1/shards', \$s->{bytes}, $cas);

	die $r->summary() if $r->{status} != 200;

	for (0 .. $#$made) {
		$made->[$_]{hash} = $s->{files}[$_]{hash};
		$made->[$_]{path} = 'f/' . $made->[$_]{sha256};
		@{ $made->[$_] }{ qw/ terms xorbs / }
			= @{ $shard->[$_] }{ qw/ terms xorbs / };
	}

	return wantarray ? @$made : $made->[0];
}

# Claims another SHA-256 for the file.

sub lie {
	my ($file) = @_;

	my $old = $file->{sha256};

	$file->{sha256} = sha256_hex('what nobody has');
	$t->sql("UPDATE xet.repo_files SET sha256 = '\\x$file->{sha256}'"
		. " WHERE sha256 = '\\x$old'");
}

sub commit {
	my $body = body(@_);

	return $t->http_start('POST', '/api/models/me/m/commit/main', {
		'Content-Length' => length($body) }, $body, timeout => 120);
}

sub body {
	return join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } },
		map { { key => 'lfsFile', value => { path => $_->{path},
			algo => 'sha256', oid => $_->{sha256},
			size => length($_->{data}) } } } @_);
}

sub proven {
	my @files = @_;
	my $n = 0;

	while (my @some = splice(@files, 0, 1000)) {
		$n += $t->sql('SELECT count(*) FROM xet.files'
			. ' WHERE sha256_proven AND sha256 IN ('
			. join(',', map { "'\\x" . sha256_hex($_->{data})
			. "'" } @some) . ')');
	}

	return $n;
}

# Returns the number of files with different bytes.

sub different {
	my %seen = map { sha256_hex($_->{data}) => 1 } @_;

	return scalar keys %seen;
}
