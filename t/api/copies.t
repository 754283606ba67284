#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Copies of xorbs: the same xorb in different encodings, by every kind of
# upload.  A stored copy never changes under its name, and a row describes the
# bytes of its copy.  Any valid upload repairs a missing, truncated or damaged
# copy, and readers see the repair immediately.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ spew /;

use File::Temp qw/ tempdir /;

# open_file_cache as in conf/nginx.conf: a cached descriptor must not keep
# damage alive.  The second node has no dedup, so clients send all bytes of a
# file to it.

my $cache = 'open_file_cache max=1000 inactive=10m;'
	. ' open_file_cache_valid 10m; open_file_cache_errors off;';

my $t = Test::Xet->new(workers => 2, log => 'info', http => $cache);
$t->run();

my $plain = Test::Xet->new(workers => 2, log => 'info', http => $cache,
	beside => $t);
$plain->write_conf(undef, directives => { xet_dedup_key => undef });
$plain->run();

my $dir = tempdir(CLEANUP => 1);
my @schemes = grep { defined } schemes();
my $true = '200 {"was_inserted":true}';
my $false = '200 {"was_inserted":false}';
my $seed = 0;

$_->allow(qr/xet: chunk \d+ of xorb \S+ can't be read/,
	qr/xet: xorb \S+ is missing or has another size/) for $t, $plain;

sub encoded {
	my ($data, $scheme) = @_;

	return { %{ make_xorb($data, scheme => $scheme, sizes => [ 8192 ]) },
		raw => $data };
}

sub send_to {
	my ($node, $x) = @_;

	return $node->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->summary();
}

# Returns data that each scheme encodes differently.

sub data { return mix(++$seed, 100_000) }

# Reads the file by every kind of read at both nodes, and the bytes of a plan's
# URLs.

sub readable {
	my ($file, $data, $name) = @_;

	my @wrong;

	for my $node ($t, $plain) {
		for (1 .. 2) {
			my $r = $node->get("/api/v1/files/$file");

			push @wrong, "GET $r->{status}"
				if $r->{status} != 200 || $r->{body} ne $data;

			my $d = $node->download($file, size => length($data));

			push @wrong, "plan @{ $d->{errors} }"
				if @{ $d->{errors} } || $d->{data} ne $data;
		}
	}

	is_deeply(\@wrong, [], $name);
}

# Checks the invariants: for every row, the file exists and has the row's size
# and digest, and every term leads to the copy that the row names.

sub proven {
	my ($name) = @_;

	my $r = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
		'verify', '--store', $t->conf_store(), '--json');

	is_deeply([ $r->{code}, $r->{json}[-1]{faults} ], [ 0, 0 ],
		"$name: rows describe their files")
		or diag($r->{out}, $r->{err});
}

# --------------------------------------------------------------------------
# an upload of a known xorb in another encoding is acknowledged, but changes
# nothing

for my $one (@schemes) {
	for my $two (@schemes) {
		my $data = data();
		my ($x, $y) = map { encoded($data, $_) } $one, $two;
		my $name = "$two after $one";

		is(send_to($t, $x), $true, "$name: stored");

		my $copy = $t->copy($x->{hash});
		my $inode = inode($copy);
		my $file = register_file($t, [ [ $x ] ]);
		my $before = $t->reconstruct($file->{hash})->{plan};

		is(send_to($_, $y), $false, "$name: known") for $t, $plain;

		is_deeply([ $t->copies($x->{hash}) ], [ $copy ],
			"$name: one copy");
		is(inode($copy), $inode, "$name: the file was not replaced");
		ok($t->copy_bytes($copy) eq $x->{bytes}, "$name: not touched");
		is_deeply($t->reconstruct($file->{hash})->{plan}{xorbs}
			{$x->{hash}}[0]{ranges},
			$before->{xorbs}{$x->{hash}}[0]{ranges},
			"$name: the same plan");

		readable($file->{hash}, $data, "$name: readable");
	}
}

# uploads by PUT and by xet put, of data that another client has uploaded

for my $scheme (@schemes) {
	my $data = mix(++$seed, 300_000);
	my $file = $t->upload($data, scheme => $scheme);
	my @before = sort $t->files_in_store();

	my $r = $plain->http('PUT', '/api/v1/files', {}, \$data);

	is($r->{status}, 200, "PUT after $scheme") or diag($r->{body});
	is($r->json()->{hash}, $file->{hash}, 'the same file');
	is_deeply([ sort $t->files_in_store() ], \@before, 'no other copies');
	readable($file->{hash}, $data, "PUT after $scheme: readable");

	spew("$dir/file", $data);
	$r = xet($plain, 'put', '--json', "$dir/file");

	is($r->{json}[0]{hash}, $file->{hash}, "xet put after $scheme")
		or diag($r->{err});
	is_deeply([ sort $t->files_in_store() ], \@before, 'no other copies');
	readable($file->{hash}, $data, "xet put after $scheme: readable");
}

proven('known ones');

# --------------------------------------------------------------------------
# damage, and the uploads that repair it

sub flip {
	my ($copy, $at) = @_;

	$t->flip_copy($copy, $at);
}

# Returns the inode of a copy; in a bucket its name, as objects have no inodes.

sub inode {
	my ($copy) = @_;

	return $t->s3() ? $copy : (stat($t->store() . "/$copy"))[1];
}

my %damage = (
	'a bit' => sub { flip($_[0], 5000) },
	'the last byte' => sub { flip($_[0], -1) },
	'cut' => sub { $t->cut_copy($_[0], 1000) },
	'empty' => sub { $t->cut_copy($_[0], 0) },
	'longer' => sub { $t->put_copy($_[0], $t->copy_bytes($_[0]) . 'x') },
	'gone' => sub { $t->remove_copy($_[0]) },
	'another encoding' => sub { $t->put_copy($_[0], $_[1]{bytes}) }
);

# Ways to repair a copy: they send the xorb or the file again.

my %ways = (
	'POST' => sub {
		my ($data, $x) = @_;
		return send_to($t, $x) eq $false;
	},
	'POST at the other node' => sub {
		my ($data, $x) = @_;
		return send_to($plain, $x) eq $false;
	},
	'PUT' => sub {
		my ($data) = @_;
		return $plain->http('PUT', '/api/v1/files', {}, \$data)
			->{status} == 200;
	},
	'xet put' => sub {
		my ($data) = @_;
		spew("$dir/file", $data);
		return xet($plain, 'put', "$dir/file")->{code} == 0;
	}
);

my @ways = sort keys %ways;
my $way = 0;

for my $kind (sort keys %damage) {
	for my $scheme (@schemes) {
		my $how = $ways[$way++ % @ways];
		my $name = "$kind, healed by $how";

		# uploads the xorb and the file that the chunker of a PUT
		# produces

		my $data = mix(++$seed, 400_000);
		my $file = $t->upload($data, scheme => 'lz4');
		my $hash = $file->{xorbs}[0]{hash};
		my $again = xorb_again($data, $scheme);
		my $same = $again->{bytes} eq xorb_again($data, 'lz4')->{bytes};

		is($again->{hash}, $hash, "$name: the same xorb");
		readable($file->{hash}, $data, "$name: before");

		my $copy = $t->copy($hash);
		my ($url) = map { $_->[0]{url} } values %{
			$t->reconstruct($file->{hash})->{plan}{xorbs} };

		$damage{$kind}->($copy, $again);

		ok($ways{$how}->($data, $again), "$name: sent again");
		readable($file->{hash}, $data, "$name: readable at once");

		ok(wait_for(10, sub { $t->copies($hash) == 1 }),
			"$name: one copy is left");

		# an upload replaces the copy unless it has exactly the bytes
		# that the row describes

		isnt($t->copy($hash), $copy, "$name: another copy")
			unless $kind eq 'another encoding' && $same;
	}
}

sub xorb_again {
	my ($data, $scheme) = @_;

	return make_xorb($data, scheme => $scheme,
		sizes => [ map { $_->{raw_length} }
			@{ hash_file($data)->{chunks} } ]);
}

proven('healed ones');

# a file of many terms in several segments, and other files that share its xorb

{
	my $data = data();
	my ($x, $y) = map { encoded($data, $_) } qw/ none bg4 /;

	send_to($t, $x);

	my $z = encoded(data(), 'none');
	send_to($t, $z);

	my @files = map { register_file($t, $_) }
		[ [ $x ] ], [ [ $x, 2, 5 ], [ $z ], [ $x, 0, 1 ] ],
		[ map { $_ % 3 ? [ $x, $_ % 12, $_ % 12 + 1 ]
			: [ $z, $_ % 7, $_ % 7 + 1 ] } 0 .. 699 ];

	is($t->sql('SELECT count(*) FROM xet.terms'), 3, 'in segments');

	$t->remove_copy($t->copy($x->{hash}));
	is(send_to($plain, $y), $false, 'healed');

	readable($_->{hash}, $_->{data}, "$_->{size} bytes") for @files;

	for ([ 9000, 50000 ], [ 8192, 16383 ], [ 1, 99_998 ]) {
		my ($first, $last) = @$_;

		my $d = $t->download($files[0]{hash}, range => [ $first,
			$last ], size => length($files[0]{data}));

		is_deeply($d->{errors}, [], "a range, $first-$last");
		ok(($d->{data} // '') eq substr($files[0]{data}, $first,
			$last - $first + 1), 'its bytes');
	}

	proven('many terms');
}

# --------------------------------------------------------------------------
# a known xorb counts as stored only if its copy exists

{
	my $data = mix(++$seed, 500_000);
	my $file = $t->upload($data);
	my ($x) = @{ $file->{xorbs} };
	my $first = $x->{chunks}[0]{hash};
	my $chunks = '/api/v1/chunks/default-merkledb/';
	my $longer = $data . mix(++$seed, 100_000);

	is($t->get("$chunks$first")->{status}, 200, 'a dedup response');
	$t->remove_copy($t->copy($x->{hash}));

	is($t->head("/api/v1/xorbs/default/$x->{hash}")->{status}, 404,
		'HEAD of a xorb without a copy');
	is($t->get("$chunks$first")->{status}, 404, 'no dedup answer');

	my $r = $t->post('/api/v1/shards', \$file->{shard});

	is($r->{status}, 400, 'a shard that names the xorb');
	is($r->json()->{error}{code}, 'unknown_xorb', 'its code');

	# a PUT of another file with the same chunks stores the chunks again

	$r = $t->http('PUT', '/api/v1/files', {}, \$longer);
	is($r->{status}, 200, 'PUT of a file that shares chunks');
	readable($r->json()->{hash}, $longer, 'is readable');
	is($t->get("/api/v1/files/$file->{hash}")->{status}, 500,
		'the old file is not');

	$r = $t->http('PUT', '/api/v1/files', {}, \$data);
	is($r->{status}, 200, 'PUT of the old file') or diag($r->{body});
	readable($file->{hash}, $data, 'the old file is readable');

	$r = $plain->http('PUT', '/api/v1/files', {}, \$data);
	is($r->{status}, 200, 'POST of the xorb');
	readable($file->{hash}, $data, 'heals it');

	is(send_to($t, $_), $false, 'and its xorb')
		for xorb_again($data, 'lz4');
}

# --------------------------------------------------------------------------
# two encodings of a xorb are sent to two nodes at the same instant: as a new
# xorb, and as a repair; then again while workers are killed

sub at_once {
	my (@sends) = @_;

	my @c = map { my ($node, $x) = @$_; [ $node->http_start('POST',
		"/api/v1/xorbs/default/$x->{hash}",
		{ 'Content-Length' => length($x->{bytes}) },
		substr($x->{bytes}, 0, -1)), substr($x->{bytes}, -1) ] } @sends;

	$_->[0]->send($_->[1]) for @c;

	return map { my $r = $_->[0]->response('POST', timeout => 60);
		$_->[0]->close(); $r->{status} // 0 } @c;
}

for my $round (1 .. 12) {
	my $data = data();
	my @x = map { encoded($data, $_) } @schemes;
	my @sends = map { my $x = $_; map { [ $_, $x ] } $t, $plain } @x;

	is_deeply([ at_once(@sends) ], [ (200) x @sends ], "round $round: new");

	my $file = register_file($t, [ [ $x[0] ] ]);

	readable($file->{hash}, $data, "round $round: readable");
	is(scalar(my @copies = $t->copies($x[0]{hash})), 1,
		"round $round: one copy");

	my $kind = (sort keys %damage)[$round % keys %damage];
	$damage{$kind}->($copies[0], $x[1]);

	is_deeply([ at_once(@sends) ], [ (200) x @sends ],
		"round $round: $kind, healed");
	readable($file->{hash}, $data, "round $round: readable again");
	ok(wait_for(10, sub { $t->copies($x[0]{hash}) == 1 }),
		"round $round: one copy again");
}

proven('at once');

for my $round (1 .. 8) {
	my $data = data();
	my @x = map { encoded($data, $_) } @schemes;
	my $known = $round % 2;

	if ($known) {
		send_to($t, $x[0]);
		register_file($t, [ [ $x[0] ] ]);
		$t->remove_copy($t->copy($x[0]{hash}));
	}

	my $lock = $t->pg_lock('xet.xorbs');
	my @c = map { my $x = $_; map { $_->http_start('POST',
		"/api/v1/xorbs/default/$x->{hash}",
		{ 'Content-Length' => length($x->{bytes}) }, $x->{bytes}) }
		$t, $plain } @x;

	wait_for(10, sub { $t->pg_blocked() >= 4 });
	$t->kill_worker('KILL', $_) for $t->worker_pids();
	$lock->unlock();

	my @status = map { $_->response('POST', timeout => 60)->{status} // 0 }
		@c;
	$_->close() for @c;

	is(scalar(grep { $_ == 200 } @status[1, 3, 5]), 3,
		"kill $round: the other node works") or diag("@status");
	is(send_to($t, $x[$round % 3]), $false, "kill $round: known");

	my $file = register_file($t, [ [ $x[0] ] ]);
	readable($file->{hash}, $data, "kill $round: readable");
}

proven('kills');

# --------------------------------------------------------------------------
# a copy is repaired after a shard was verified against it, and before the shard
# commits

{
	my $data = data();
	my ($x, $y) = map { encoded($data, $_) } qw/ none bg4 /;

	send_to($t, $x);

	my $shard = make_shard({ files => [ { terms => [ {
		xorb => $x->{hash}, start => 1, end => 4 } ] } ],
		xorbs => [ { %$x, raw => '', bytes => '' } ] });

	my $lock = $t->pg_lock('xet.staged');
	my $c = $t->http_start('POST', '/api/v1/shards',
		{ 'Content-Length' => length($shard->{bytes}) },
		$shard->{bytes});

	ok(wait_for(10, sub { $t->pg_blocked() }), 'the commit waits');

	$t->remove_copy($t->copy($x->{hash}));
	is(send_to($plain, $y), $false, 'healed meanwhile');
	$lock->unlock();

	my $r = $c->response('POST', timeout => 30);
	$c->close();

	is($r->{status}, 503, 'the commit is refused') or diag($r->{body});
	ok($r->header_value('Retry-After'), 'temporarily');

	$r = $t->post('/api/v1/shards', \$shard->{bytes});
	is($r->{status}, 200, 'a retry succeeds');
	readable($shard->{files}[0]{hash}, substr($data, 8192, 3 * 8192),
		'readable');
	proven('a commit');
}

# --------------------------------------------------------------------------
# The server reads a row, and its copy is replaced before the server opens it.
# The missing file does not mean that the xorb is lost.

{
	my $data = mix(++$seed, 300_000);
	my $file = $t->upload($data, send => 0);
	my ($x) = @{ $file->{xorbs} };
	my $old = $t->sql('SELECT pg_get_functiondef('
		. "'xet.shard_slices'::regproc)");
	my $real = $old =~ s/xet\.shard_slices\(/xet.shard_slices_real(/r;

	send_to($t, $x);

	$t->sql($real);
	$t->sql(<<'EOF');
CREATE OR REPLACE FUNCTION xet.shard_slices(xorbs bytea[], starts integer[],
    ends integer[], proof boolean, wide boolean, any_repo boolean, repo text,
    subject bytea)
    RETURNS TABLE (chunk_count integer, hashes bytea, raw_ends bytea,
                   stored_ends bytea, copy_id integer, stored_size bigint,
                   intact boolean, own boolean, hidden bigint)
    LANGUAGE sql STABLE
AS $$
    SELECT s.chunk_count, s.hashes, s.raw_ends, s.stored_ends, s.copy_id # 1,
           s.stored_size, s.intact, s.own, s.hidden
      FROM xet.shard_slices_real(xorbs, starts, ends, proof, wide, any_repo,
                                 repo, subject) s;
$$;
EOF

	my @answers = (
		$t->post('/api/v1/shards', \$file->{shard}),
		$t->http('PUT', '/api/v1/files', {}, \$data),
		$plain->http('PUT', '/api/v1/files', {}, \$data)
	);

	is(join(' ', map { $_->{status} } @answers), '503 503 503',
		'healed meanwhile: 503')
		or diag(map { $_->summary() } @answers);
	like($_->{body}, qr/replaced or removed/, 'healed meanwhile: reason')
		for @answers;
	is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT'
		. ' NULL'), 0, 'no damage is recorded');

	$t->sql("$old; DROP FUNCTION xet.shard_slices_real");

	is($t->post('/api/v1/shards', \$file->{shard})->{status}, 200,
		'the shard again');
	is($t->http('PUT', '/api/v1/files', {}, \$data)->{status}, 200,
		'the file again');
	readable($file->{hash}, $data, 'healed meanwhile');
}

# copies that are lost during a PUT that uses them

{
	my $data = mix(++$seed, 3_000_000);
	my $file = $t->upload($data);
	my $c = $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => length($data) },
		substr($data, 0, 2_000_000));

	# the server may look up the chunks before or after the loss; either is
	# right

	sleep(1);

	$t->remove_copy($t->copy($_->{hash})) for @{ $file->{xorbs} };
	$c->send(substr($data, 2_000_000));

	my $r = $c->response('PUT', timeout => 60);
	$c->close();

	like($r->{status}, qr/^(?:200|503)$/, 'lost meanwhile: the first PUT')
		or diag($r->summary());

	is($t->http('PUT', '/api/v1/files', {}, \$data)->{status}, 200,
		'lost meanwhile: the next one');
	readable($file->{hash}, $data, 'lost meanwhile');
}

# a grant that finds a copy missing also records the damage

{
	my $x = encoded(data(), 'none');

	send_to($t, $x);
	register_file($t, [ [ $x ] ]);
	$t->remove_copy($t->copy($x->{hash}));

	is($t->post("/api/v1/xorb-grants/default/$x->{hash}", '{}')->{status},
		404, 'no grant');
	ok(wait_for(10, sub {
		$t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS'
			. " NOT NULL AND hash = '\\x"
			. plain_hash($x->{hash}) . "'") == 1
	}), 'recorded as damage');
	is(send_to($t, $x), $false, 'sent again');
}

# --------------------------------------------------------------------------
# Damage is recorded before the reader that found it gets its response, so an
# upload after that response does not find the damaged copy stored.  A reader
# that disconnects before its response does not undo the record.

{
	my $old = $t->sql('SELECT pg_get_functiondef('
		. "'xet.xorb_damaged'::regproc)");
	my $real = $old =~ s/xet\.xorb_damaged\(/xet.xorb_damaged_real(/r;

	$t->sql($real);
	$t->sql(<<'EOF');
CREATE OR REPLACE FUNCTION xet.xorb_damaged(xorbs bytea[], copy_ids integer[])
    RETURNS integer
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_sleep(1);
    RETURN xet.xorb_damaged_real(xorbs, copy_ids);
END;
$$;
EOF

	my $recorded = sub {
		return $t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at'
			. ' IS NOT NULL');
	};

	for my $node ($t, $plain) {
		my $data = random_bytes(++$seed, 300_000);
		my %before = map { $_ => 1 } $t->files_in_store();
		my $name = 'damage, ' . ($node == $t ? 'dedup' : 'no dedup');
		my $put = sub {
			return $node->http('PUT', '/api/v1/files', {}, \$data);
		};
		my $url = '/api/v1/files/' . $put->()->json()->{hash};
		my $damage = sub {
			flip($_, 5000)
				for grep { !$before{$_} } $t->files_in_store();
		};

		my $known = $recorded->();

		$damage->();

		my $r = $t->http('GET', $url);

		is($recorded->(), $known + 1,
			"$name: recorded before the response");
		is($r->{status}, 500, "$name: status 500")
			or diag($r->summary());
		is($put->()->{status}, 200, "$name: sent again");
		is($t->http('GET', $url)->{body}, $data, "$name: readable");

		# a reader that disconnects

		$damage->();

		my $c = $t->http_start('GET', $url);

		$c->read_some(1, 0.3);
		$c->abort();

		ok(wait_for(10, sub { $recorded->() == $known + 1 }),
			"$name: on record without a reader");
		is($put->()->{status}, 200, "$name: sent once more");
		is($t->http('GET', $url)->{body}, $data,
			"$name: readable again");
	}

	$t->sql('DROP FUNCTION xet.xorb_damaged; '
		. "$old; DROP FUNCTION xet.xorb_damaged_real");
}

# --------------------------------------------------------------------------
# a row without digests, as older versions wrote it; the next upload replaces
# the row

{
	my $data = data();
	my ($x, $y) = map { encoded($data, $_) } qw/ lz4 none /;

	send_to($t, $x);

	my $file = register_file($t, [ [ $x ] ]);
	my $copy = $t->copy($x->{hash});

	$t->put_copy($copy =~ s/\.\w+\z//r, $t->copy_bytes($copy));
	$t->remove_copy($copy);
	$t->sql("UPDATE xet.xorbs SET copy_id = 0, digest = NULL"
		. " WHERE hash = '\\x" . plain_hash($x->{hash}) . "';"
		. "UPDATE xet.files SET packed = overlay(packed placing"
		. " '\\x00000000' from 49) WHERE hash = '\\x"
		. plain_hash($file->{hash}) . "'");

	readable($file->{hash}, $data, 'readable, of an older version');
	is(send_to($t, $y), $false, 'sent again');
	ok(wait_for(10, sub { $t->copies($x->{hash}) == 1
		&& $t->copy($x->{hash}) =~ /\.\w{8}\z/ }),
		'a new copy');
	readable($file->{hash}, $data, 'readable');
}

# --------------------------------------------------------------------------
# PostgreSQL refuses to write: an upload leaves nothing behind

{
	$t->sql('ALTER TABLE xet.xorbs ADD CONSTRAINT no CHECK (raw_size < 0)'
		. ' NOT VALID');

	my @before = sort $t->files_in_store();

	for my $node ($t, $plain) {
		for my $scheme (@schemes) {
			my $x = encoded(data(), $scheme);

			like(send_to($node, $x), qr/^50[03] /, 'refused');
		}
	}

	$t->allow(qr/"xorb_put" failed/);
	ok(wait_for(10, sub { "@before" eq join(' ',
		sort $t->files_in_store()) }), 'no file is left');
	$t->sql('ALTER TABLE xet.xorbs DROP CONSTRAINT no');
}

# descriptors that open_file_cache keeps are not a leak

$plain->stop();
$t->write_conf(undef, http => '');
$t->reload();
$t->done();
