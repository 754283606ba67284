#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Valid shards in all the forms that clients send.  The test checks what a shard
# registers, even if it is large, or if many clients send it at the same time.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp /;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use List::Util qw/ sum0 /;
use Time::HiRes qw/ sleep /;

my $t = Test::Xet->new(Test::Xet::two_workers(), log => 'info',
	pg_params => 'lock_timeout=5m');

$t->run();
$t->fds_mark();

my $one = '200 {"result":1}';
my $zero = '200 {"result":0}';
my $seed = 0;
my $digest = '';

sub answer { return $_[0]->summary() }

sub shard {
	my ($bytes, @o) = @_;

	return answer($t->post('/api/v1/shards', \$bytes, {}, @o));
}

# Uploads a xorb of chunks of equal size.

my (%raw, %chunk_size);

sub xorb {
	my ($chunks, $size) = @_;

	my $x = $t->put_xorb(random_bytes(++$seed, $chunks * $size),
		scheme => 'none', sizes => [ $size ]);

	$raw{$x->{hash}} = $x->{data};
	$chunk_size{$x->{hash}} = $size;

	return $x;
}

# Returns one file of a shard's description, with terms [ xorb, start, end ].

sub file {
	my ($terms, @more) = @_;

	return {
		verification => JSON::PP::true, terms => [ map { {
			xorb => $_->[0]{hash}, start => $_->[1],
			end => $_->[2],
			chunks => [ @{ $_->[0]{chunks} }[
				$_->[1] .. $_->[2] - 1 ] ]
		} } @$terms ], @more
	};
}

sub data {
	my ($terms) = @_;

	return join('', map {
		my ($x, $start, $end) = @$_;
		my $size = $chunk_size{$x->{hash}};
		substr($raw{$x->{hash}}, $start * $size,
			($end - $start) * $size)
	} @$terms);
}

# Checks that reconstructions of both versions, complete and partial, give the
# data.

sub downloads {
	my ($name, $hash, $data, @ranges) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $size = length($data);

	for my $range (undef, @ranges) {
		for my $version (1, 2) {
			my $d = $t->download($hash, version => $version,
				size => $size,
				$range ? (range => $range) : ());
			my $want = $range ? substr($data, $range->[0],
				$range->[1] - $range->[0] + 1) : $data;

			is("@{ $d->{errors} } $d->{status}", ' 200',
				"$name: rules");
			ok(($d->{data} // '') eq $want, "$name: data");
		}
	}
}

sub row {
	my ($hash) = @_;

	return scalar $t->sql("SELECT size, term_count,"
		. " coalesce(encode(sha256, 'hex'), '-'),"
		. " coalesce(length(packed)::text, '-')"
		. " FROM xet.files WHERE hash = '\\x"
		. plain_hash($hash) . "'");
}

# --------------------------------------------------------------------------
# footers

for my $footer (qw/ none js full /) {
	my $data = mix(++$seed, 400000);
	my $file = $t->upload($data, shard_footer => $footer,
		xorb_chunks => 3);
	my $name = "trap 12: footer $footer";

	is($file->{result}, 1, "$name: new");
	ok($file->{result} !~ /\D/, "$name: a number");

	downloads($name, $file->{hash}, $data, [ 1000, 299999 ]);

	is(shard($file->{shard}), $zero, "trap 26: $name: again");
	is($t->head("/api/v1/files/$file->{hash}")
		->header_value('Content-Length'), 400000, "$name: HEAD");

	my $n = @{ $file->{terms} };
	is(row($file->{hash}), join('|', 400000, $n, sha256_hex($data),
		52 * $n), "trap 13: $name: row");
	cmp_ok($n, '>', 1, 'of several terms');

	my $digest = pack('H*', sha256_hex($data));
	ok(index($file->{shard}, $digest) < 0, 'the shard has swapped bytes');
}

# the server ignores a footer, and the footer size in the header

my $x = xorb(4, 1000);
my $n = 0;

for my $size (1, 200, 48, 0xffffffff, '18446744073709551615') {
	for my $rest ('', "\0", 'x' x 199, random_bytes(1, 100000)) {
		my $terms = [ ([ $x, 0, 1 ]) x ++$n ];
		my $s = make_shard({ files => [ file($terms) ] });

		substr($s->{bytes}, 40, 8) = pack('Q<', $size);
		is(shard($s->{bytes} . $rest), $one, "trap 12: footer_size"
			. " $size, " . length($rest) . ' bytes');
	}
}

# --------------------------------------------------------------------------
# sizes and SHA-256

for my $stored (0, 1, 0xffffffff) {
	my $data = mix(++$seed, 100000);
	my $file = $t->upload($data, send => 0);
	my ($y) = @{ $file->{xorbs} };

	$t->post("/api/v1/xorbs/default/$y->{hash}", \$y->{bytes});
	my $s = make_shard({ xorbs => [ { %$y, stored_size => $stored } ],
		files => [ { verification => JSON::PP::true,
			terms => $file->{terms} } ] });

	is(shard($s->{bytes}), $one, "trap 14: num_bytes_on_disk $stored");
	is((split(/\|/, row($file->{hash})))[2], '-',
		'trap 13: without SHA-256');
	downloads('trap 14', $file->{hash}, $data);
}

my $sum = sha256_hex('any');

for my $sha256 (undef, '0' x 64, $sum) {
	for my $verification (JSON::PP::true, JSON::PP::false) {
		my $terms = [ [ $x, 1, 2 ], ([ $x, 0, 4 ]) x ++$n ];
		my $s = make_shard({ files => [ file($terms,
			$sha256 ? (sha256 => $sha256) : (),
			verification => $verification) ] });

		my $name = 'trap 13: SHA-256 ' . ($sha256 // 'missing') . ', '
			. ($verification ? 'verified' : 'no verification');
		my $want = ($sha256 // '') eq $sum ? $sum : '-';

		is(shard($s->{bytes}), $one, $name);
		is((split(/\|/, row($s->{files}[0]{hash})))[2], $want,
			'stored as claimed');
		downloads($name, $s->{files}[0]{hash}, data($terms));
	}
}

# a known file without SHA-256 gets it from a later shard, and keeps it.  Shards
# that add nothing do not rewrite the file's row.

sub version {
	return scalar $t->sql("SELECT xmin FROM xet.files WHERE hash = '\\x"
		. plain_hash($_[0]) . "'");
}

my @late = ([ [ $x, 3, 4 ], ([ $x, 0, 4 ]) x ++$n ],
	[ [ $x, 2, 4 ], ([ $x, 0, 4 ]) x $n ]);
my $bare = make_shard({ files => [ map { file($_) } @late ] });
my ($first, $second) = map { $_->{hash} } @{ $bare->{files} };

is(shard($bare->{bytes}), $one, 'two files without SHA-256');

my @versions = map { version($_) } $first, $second;
my $later = make_shard({ files => [ file($late[0], sha256 => $sum),
	file($late[1]), file($late[0], sha256 => sha256_hex('other')) ] });

is(shard($later->{bytes}), $zero, 'one with SHA-256: nothing new');
is((split(/\|/, row($first)))[2], $sum, 'its SHA-256 is known');
is((split(/\|/, row($second)))[2], '-', 'that of the other file is not');
isnt(version($first), $versions[0], 'its row was updated');
is(version($second), $versions[1], 'no other row was updated');

@versions = map { version($_) } $first, $second;

for my $sha256 ($sum, sha256_hex('other'), undef) {
	$later = make_shard({ files => [ file($late[0],
		$sha256 ? (sha256 => $sha256) : ()), file($late[1]) ] });
	is(shard($later->{bytes}), $zero,
		'again, ' . ($sha256 // 'without SHA-256'));
}

is((split(/\|/, row($first)))[2], $sum, 'the first SHA-256 stays');
is_deeply([ map { version($_) } $first, $second ], \@versions,
	'no row was updated');

# --------------------------------------------------------------------------
# empty files, and shards without files

my $empty = '0' x 64;
my $all = make_shard({ files => [ {
	verification => JSON::PP::true, terms => [], sha256 => sha256_hex('')
}, file([ [ $x, 2, 4 ] ]) ] });

is($all->{files}[0]{hash}, $empty, 'an empty file');
is(shard($all->{bytes}), $one, 'trap 31: an empty file and another');
is(row($empty), '0|0|' . sha256_hex('') . '|0', 'its row');

for my $flags (0xc0000000, 0x80000000, 0x40000000, 0) {
	my $s = make_shard({ files => [ {
		verification => $flags & 0x80000000 ? JSON::PP::true
			: JSON::PP::false,
		$flags & 0x40000000 ? (sha256 => $empty) : (), terms => []
	} ] });

	is(unpack('V', substr($s->{bytes}, 48 + 32, 4)), $flags, 'flags');
	is(shard($s->{bytes}), $zero, sprintf('trap 31: flags %x', $flags));
}

my $r = $t->head("/api/v1/files/$empty");
is($r->{status}, 200, 'trap 31: HEAD');
is($r->header_value('Content-Length'), 0, 'its length');
ok((grep { $_ == $t->get("/api/v2/reconstructions/$empty")->{status} }
	200, 416), 'its reconstruction');

my $rows = $t->rows();
is(shard(make_shard({})->{bytes}), $zero, 'no files, no xorbs');
is(shard(make_shard({ xorbs => [ $x ] })->{bytes}), $zero, 'no files');
is(shard(make_shard({ xorbs => [ $x ], footer => 'full' })->{bytes}), $zero,
	'no files, but a footer');
is_deeply($t->rows(), $rows, 'nothing registered');

# --------------------------------------------------------------------------
# terms

my $y = xorb(6, 700);
my %terms = (
	'not listed' => [ [ $x, 0, 4 ], [ $y, 0, 6 ] ],
	'a chunk out of the middle' => [ [ $y, 3, 4 ] ],
	'repeated' => [ ([ $y, 1, 3 ]) x 20 ],
	'overlapping' => [ [ $y, 0, 3 ], [ $y, 0, 1 ], [ $y, 3, 4 ],
		[ $y, 2, 6 ] ],
	'backwards' => [ map { [ $y, 5 - $_, 6 - $_ ] } 0 .. 5 ],
	'two xorbs in turn' => [ map { [ $x, $_, $_ + 1 ],
		[ $y, 3 - $_, 6 - $_ ] } 0 .. 3 ]
);

for my $name (sort keys %terms) {
	my $data = data($terms{$name});
	my $s = make_shard({ files => [ file($terms{$name}) ] });

	is(shard($s->{bytes}), $one, "trap 32: $name");
	downloads("trap 32: $name", $s->{files}[0]{hash}, $data,
		[ 1, length($data) - 2 ], [ 650, 750 ]);
	is(shard($s->{bytes}), $zero, 'again');
}

my $wide = xorb(8192, 12);
my $s = large_shard($wide, [ [ 0, 8192 ], [ 8191, 8192 ], [ 0, 8192 ] ]);
is(shard($s->{bytes}), $one, 'trap 32: terms of 8,192 chunks');
is(row($s->{files}[0]{hash}), '196620|3|-|156', 'its row');

# --------------------------------------------------------------------------
# a shard that has the same file twice registers the file once, and completely

my $terms = [ [ $x, 0, 1 ], [ $y, 0, 2 ] ];
$s = make_shard({ files => [ (file($terms)) x 2 ] });
is(shard($s->{bytes}), $one, 'a file twice');
downloads('a file twice', $s->{files}[0]{hash}, data($terms));

my $z = xorb(600, 20);
my @cut = ([ [ 0, 600 ] ], [ map { [ $_, $_ + 1 ] } 0 .. 599 ],
	[ [ 0, 2 ], map { [ $_, $_ + 1 ] } 2 .. 599 ],
	[ [ 0, 3 ], map { [ $_, $_ + 1 ] } 3 .. 599 ]);

for my $pair ([ 0, 1 ], [ 2, 0 ], [ 1, 2 ], [ 3, 2, 1, 0 ]) {
	my $head = [ $x, 0, 1 + $n++ % 4 ];
	my @files = map { file([ ($head) x $n,
		map { [ $z, @$_ ] } @{ $cut[$_] } ]) } @$pair;
	my $name = "a file cut in several ways, @$pair";

	$s = make_shard({ files => \@files });
	is($s->{files}[0]{hash}, $s->{files}[1]{hash}, 'the same file');
	is(shard($s->{bytes}), $one, $name);

	downloads($name, $s->{files}[0]{hash}, data([ ($head) x $n ])
		. $raw{$z->{hash}}, [ 5000, 5600 ]);
}

# --------------------------------------------------------------------------
# routes

for my $uri (qw! /api/v1/shards /api/shards !) {
	my $s = make_shard({ files => [ file([ ([ $x, 0, 1 ]) x 2,
		([ $y, 0, 1 ]) x ++$n ]) ] });

	is(answer($t->post($uri, $s->{bytes}, {}, chunked => 1)), $one,
		"trap 23: $uri");
	is(answer($t->post($uri, $s->{bytes}, { 'Content-Type' => 'text/plain'
		})), $zero, 'and again');
}

# an unknown route: a client that is still sending the body gets the response

my $body = random_bytes(1, 3 << 20);

for my $uri (qw! /api/v3/shards /api/v1/nothing !) {
	my $c = $t->http_start('POST', $uri,
		{ 'Content-Length' => length($body) }, substr($body, 0, 1000));

	for my $piece (unpack('(a500000)*', substr($body, 1000))) {
		sleep(0.03);
		$c->send($piece);
	}

	my $r = $c->response('POST');

	is("$r->{status} " . ($r->{error} // ''), '404 ', "trap 25: $uri");
	is($r->json()->{error}{code}, 'no_route', 'trap 25: JSON');
	is($r->{send_error} // 'none', 'none', 'trap 25: all was sent');
	$c->close();
}

# v2 reports its progress in frames; here it sends none before the end

$s = make_shard({ files => [ file([ [ $y, 1, 2 ], [ $x, 0, 1 ] ]) ] });

for my $result (1, 0) {
	my $c = $t->http_start('POST', '/api/v2/shards',
		{ 'Content-Length' => length($s->{bytes}) },
		substr($s->{bytes}, 0, 60));
	ok(!$c->closed(0.1), 'trap 25: v2 waits for the body');
	$c->send(substr($s->{bytes}, 60));

	my $r = $c->response('POST');

	is($r->{status}, 200, 'trap 24: v2');
	is($r->header_value('Content-Type'), 'application/x-ndjson',
		'trap 24: type');
	is_deeply($r->frames()->[-1]{data}, { type => 'result',
		result => $result }, 'trap 24: the last frame');
	$c->close();
}

downloads('v2', $s->{files}[0]{hash}, data([ [ $y, 1, 2 ], [ $x, 0, 1 ] ]));

# --------------------------------------------------------------------------
# concurrent uploads

sub at_once {
	my ($uri, @bodies) = @_;

	my @c = map { $t->http_start('POST', $uri, {
		'Content-Length' => length($_) }, substr($_, 0, -1),
		port => 8081) } @bodies;

	$c[$_]->send(substr($bodies[$_], -1)) for 0 .. $#c;

	my %answers;
	$answers{answer($_->response('POST', timeout => 30))}++ for @c;
	$_->close() for @c;

	return \%answers;
}

for (1 .. 3) {
	my $terms = [ [ $y, 4, 6 ], ([ $x, 0, 2 ]) x ++$n ];
	my $s = make_shard({ files => [ file($terms) ] });

	is_deeply(at_once('/api/v1/shards', ($s->{bytes}) x 16),
		{ $one => 1, $zero => 15 }, 'trap 34: 16 at once');
	downloads('trap 34', $s->{files}[0]{hash}, data($terms));
}

my %pids = map { /^(\d+) 200 POST/ ? ($1 => 1) : () }
	split(/\n/, $t->read_file('pid.log'));
is(scalar keys %pids, 2, 'both workers took part');

# the same files in another order, and other files that begin with the same
# chunks in another order: sessions must not deadlock

for my $round (1 .. 4) {
	my $w = xorb(200, 10);
	my @files = map { file([ [ $w, $_, $_ + 1 ] ]) } 0 .. 199;
	my @more = map { file([ [ $w, $_, $_ + 1 ], [ $x, 0, 1 ] ]) } 0 .. 199;

	my ($s1, $s2, $s3) = map { make_shard({ files => $_ })->{bytes} }
		\@files, [ reverse @files ], [ reverse @more ];

	my $answers = at_once('/api/v1/shards', ($s1, $s2, $s3) x 4);

	is_deeply([ sort keys %$answers ], [ $zero, $one ],
		'trap 34: files in another order') or diag(explain($answers));
	is(sum0(values %$answers), 12, 'all of them');
}

# a xorb on one connection, right after that the shard on another connection,
# and then the plan on a third one

my %worker;

for my $i (1 .. 30) {
	my $data = random_bytes(1000 + $i, 20000);
	my $file = eval { $t->upload($data, port => 8081) };
	my $d = $t->reconstruct($file->{hash}, port => 8081, twice => 0,
		size => 20000) if $file;

	$worker{!$file ? $@ : $d->{plan} ? 'good' : "plan $d->{status}"}++;
}

is_deeply(\%worker, { good => 30 }, 'trap 35: one after the other');

# --------------------------------------------------------------------------
# large shards; their descriptions are long as well, and JSON::PP is slow

$t->pg()->count_inserts('xet.staged');

sub staged { return $t->pg()->inserted() }

# Makes a shard of files with terms [ start, end ] of one xorb, and one SHA-256.

sub large_shard {
	my ($w, @files) = @_;

	return make_large_shard($w, \@files, each => $digest);
}

my $w = xorb(64, 10);
my @ranges = map { my $start = $_ * 7 % 60; [ $start, $start + 1 + $_ % 4 ] }
	1 .. 25000;
my $data = data([ map { [ $w, @$_ ] } @ranges ]);

$s = large_shard($w, \@ranges);
my $hash = $s->{files}[0]{hash};

cmp_ok(length($s->{bytes}), '>', 2 << 20, 'a file of 25,000 terms');
is(shard($s->{bytes}, timeout => 60), $one, 'registered');
is(row($hash), length($data) . '|25000|-|-', 'its row');
is($t->sql('SELECT count(*), sum(length(t.packed)) / 52,'
	. ' max(length(t.packed)) / 52, max(end_offset)'
	. ' FROM xet.terms t JOIN xet.files f'
	. " ON f.id = file_id WHERE hash = '\\x" . plain_hash($hash) . "'"),
	'98|25000|256|' . length($data), 'its segments');
cmp_ok(staged(), '>', 0, 'was staged');
is($t->rows()->{staged}, 0, 'is staged no more');
is($t->head("/api/v1/files/$hash")->header_value('Content-Length'),
	length($data), 'HEAD');

my $plan = $t->reconstruct($hash, twice => 0, size => length($data));
is_deeply($plan->{errors}, [], 'a plan of all');
ok(join(' ', map { "$_->{hash} $_->{range}{start} $_->{range}{end}" }
	@{ $plan->{plan}{terms} }) eq join(' ', map { "$w->{hash} @$_" }
	@ranges), 'all of its terms');

for my $start (0, 6399, 6400, 300000, length($data) - 300) {
	my $d = $t->download($hash, range => [ $start, $start + 299 ],
		size => length($data));

	is_deeply($d->{errors}, [], "from $start: rules");
	ok($d->{data} eq substr($data, $start, 300), "from $start: data");
}

is(shard($s->{bytes}, timeout => 60), $zero, 'again');
is($t->rows()->{staged}, 0, 'nothing left staged');

# many small files: the time is not quadratic in their number

$w = $wide;

my $before = staged();
my $files = $t->rows()->{files};
my @small = map { [ [ $_, $_ + 1 ] ] } 0 .. 4999;

$s = large_shard($w, @small);

is(shard($s->{bytes}, timeout => 60), $one, '5,000 files');
cmp_ok(staged(), '>', $before, 'staged');
is($t->rows()->{files}, $files + 5000, 'their rows');

for my $i (0, 1, 2499, 3276, 3277, 4998, 4999) {
	my $d = $t->download($s->{files}[$i]{hash}, size => 12);

	is_deeply($d->{errors}, [], "file $i: rules");
	is($d->{data}, substr($raw{$w->{hash}}, $i * 12, 12), "file $i: data");
	is($t->head("/api/v1/files/$s->{files}[$i]{hash}")->{status}, 200,
		"file $i: HEAD");
}

my @many = map { my $n = $_; map { [ [ $_, $_ + $n ] ] } 0 .. 7999 } 2, 3;

is(shard(large_shard($w, @many)->{bytes}, timeout => 20), $one,
	'16,000 files');
is($t->rows()->{files}, $files + 21000, 'their rows');

my $known = $t->sql('SELECT count(sha256) FROM xet.files');
$digest = "\"sha256\":\"$sum\",";

is(shard(large_shard($w, @many)->{bytes}, timeout => 20), $zero,
	'again, with SHA-256');
is($t->sql('SELECT count(sha256) FROM xet.files'), $known + 16000,
	'all are known');
$digest = '';

# two sessions register the same files in opposite orders

$w = xorb(5000, 12);
$s = large_shard($w, @small);
my $reverse = large_shard($w, reverse @small);

my $answers = at_once('/api/v1/shards', ($s->{bytes}, $reverse->{bytes}) x 2);
is_deeply([ sort keys %$answers ], [ $zero, $one ],
	'trap 34: 5,000 files in two orders at once')
	or diag(explain($answers));
is($t->rows()->{files}, $files + 26000, 'their rows');
is(shard($reverse->{bytes}, timeout => 60), $zero, 'again');
is($t->rows()->{files}, $files + 26000, 'no more rows');
ok(wait_for(5, sub { $t->rows()->{staged} == 0 }), 'nothing left staged');

# --------------------------------------------------------------------------
# shards of real clients; rows without copies stand for their xorbs

SKIP: {
	my $dir = ($ENV{XET_TEST_DATA} || root() . '/../shared/data') . '/xet';
	my $ref = "$dir/xet-spec-reference-files/ev-population.csv";

	skip 'reference data absent', 13 unless -f "$ref.chunks";

	my @chunks = map { [ split ' ' ] } split(/\n/, slurp("$ref.chunks"));

	register(scalar xorb_of("$ref.shard"), @chunks);

	for my $form (qw/ verification-no-footer verification /) {
		is(shard(slurp("$ref.shard.$form")),
			$form =~ /no/ ? $one : $zero, "reference, $form");
	}

	is(shard(slurp("$ref.shard")), $zero, 'reference, not verified');
	is(shard(slurp("$ref.shard.dedupe")), $zero, 'a dedup response');

	my $hash = '118a53328412787fee04011dcf82fdc4'
		. 'acf3a4a1eddec341c910d30a306aaf97';

	is(row($hash), '63527244|1|f41255b252f776125f2b657136654e4d'
		. '4d5d2ccf8ef4db0ec186bd1981b69734|52', 'its row');

	my $d = $t->reconstruct($hash, size => 63527244);
	is_deeply($d->{errors}, [], 'its plan');

	my $file = "$dir/hf_xet-client-shards/"
		. 'one-file-one-chunk.no-footer.shard';
	my $xorb = xorb_of($file);

	register($xorb, [ $xorb, 98308 ]);
	is(shard(slurp($file)), $one, 'a shard of hf_xet');
	is(row('ba1182e5c66789f45bcdc0d305fe9bf9'
		. '07f4ef8c771c0b5de5eb3d0fa98081ad'), '98308|1|'
		. 'e5835c05ef85d8ae7f4852930d723e12'
		. 'e9b97dba9ccf974e400d412f0dd4deb9|52', 'its row');
}

sub xorb_of {
	return parse_shard(slurp($_[0]))->{xorbs}[0]{hash};
}

# Inserts the row of a xorb whose bytes are not available.

sub register {
	my ($hash, @chunks) = @_;

	my ($raw, $stored) = (0, 0);
	my ($hashes, $raw_ends, $stored_ends) = ('', '', '');

	for (@chunks) {
		$hashes .= plain_hash($_->[0]);
		$raw_ends .= unpack('H*', pack('V', $raw += $_->[1]));
		$stored_ends .= unpack('H*', pack('V', $stored += 100));
	}

	is($t->sql("SELECT intact FROM xet.xorb_put('\\x" . plain_hash($hash)
		. "', '\\x$hashes', '\\x$raw_ends', '\\x$stored_ends', $raw,"
		. " $stored, '{}', 0, '\\x" . '00' x 16
		. "', true, '', NULL)"), 't', 'a row for a xorb');

	# a copy of the size in the row

	$t->put_copy("xorbs/default/@{[ substr($hash, 0, 2) ]}/$hash",
		"\0" x $stored);
}

$t->done();
