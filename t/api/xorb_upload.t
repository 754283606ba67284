#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Uploads of valid xorbs, with every form of body and up to the maximum size.
# The test checks what is stored, and when the response is sent, even if many
# clients send the same xorb at the same time, or a worker crashes.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use List::Util qw/ sum0 /;

my $t = Test::Xet->new(Test::Xet::two_workers(), log => 'info');

$t->run();
$t->fds_mark();

my $route = '/api/v1/xorbs/default';

sub stored {
	my ($hash) = @_;

	return $t->copy_bytes($t->copy($hash));
}

sub answer { return $_[0]->summary() }

my $true = '200 {"was_inserted":true}';
my $false = '200 {"was_inserted":false}';

# A small xorb that no other test uses.

my $seed = 100;

sub fresh {
	return make_xorb(random_bytes(++$seed, 30000), sizes => [ 10000 ], @_);
}

# --------------------------------------------------------------------------
# one upload and what it stores

my $x = make_xorb(mix(1, 500000), scheme => 'auto');
my $r = $t->post("$route/$x->{hash}", \$x->{bytes});

is(answer($r), $true, 'inserted');
is($r->header_value('Content-Type'), 'application/json', 'content type');
is(ref $r->json()->{was_inserted}, 'JSON::PP::Boolean', 'a boolean');

my ($name) = $t->files_in_store();

is(scalar(my @all = $t->files_in_store()), 1, 'one file');
like($name, qr!\Axorbs/default/@{[ substr($x->{hash}, 0, 2) ]}/$x->{hash}
	\.[0-9a-f]{8}\z!x, 'its path');
ok(stored($x->{hash}) eq $x->{bytes}, 'its content');

my $columns = $t->sql("SELECT encode(hash, 'hex'), chunk_count, raw_size,"
	. " stored_size, encode(chunk_hashes, 'hex'), encode(raw_ends, 'hex'),"
	. " encode(stored_ends, 'hex') FROM xet.xorbs");

is($columns, join('|', plain_hash($x->{hash}), scalar @{ $x->{chunks} }, 500000,
	$x->{stored_size}, join('', map { plain_hash($_->{hash}) }
		@{ $x->{chunks} }),
	join('', map { unpack('H*', pack('V', $_->{raw_start}
		+ $_->{raw_length})) } @{ $x->{chunks} }),
	join('', map { unpack('H*', pack('V', $_->{stored_end})) }
		@{ $x->{chunks} })), 'its row');

$r = $t->head("$route/$x->{hash}");
is($r->{status}, 200, 'HEAD');
is($r->header_value('Content-Length'), $x->{stored_size}, 'its length');

is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $false, 'once more');
is($t->rows()->{xorbs}, 1, 'still one row');

# the next upload repairs a damaged file

my $damaged = $t->copy($x->{hash});

$t->damage_copy($damaged, 1000, 'damage');

isnt($t->copy_bytes($damaged), substr($x->{bytes}, 0, $x->{stored_size}),
	'damaged');
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $false, 'once more');
ok(wait_for(5, sub { !defined $t->copy_bytes($damaged) }),
	'the damaged copy is removed');
is(stored($x->{hash}), substr($x->{bytes}, 0, $x->{stored_size}), 'healed');

is(answer($t->post("$route/" . uc($x->{hash}), \$x->{bytes})), $false,
	'hash in upper case');

# --------------------------------------------------------------------------
# routes

for my $base (qw! /api/v1 /api !) {
	for my $prefix (qw/ default default-merkledb a X.y_z-0 /) {
		my $uri = "$base/xorbs/$prefix/";
		my $y = fresh();

		is(answer($t->post("$uri$y->{hash}", \$y->{bytes})), $true,
			"POST $uri");
		is(answer($t->post("$route/$y->{hash}", \$y->{bytes})),
			$false, 'the same as with the default prefix');
		ok(stored($y->{hash}) eq $y->{bytes}, 'stored there too');
	}
}

# --------------------------------------------------------------------------
# bodies

for my $scheme (grep({ defined } schemes()), 'auto') {
	for my $footer ('', 'v0', 'v1') {
		for my $chunked (0, 1, 777) {
			my $data = mix(++$seed, 90000);
			my $y = make_xorb($data, scheme => $scheme,
				footer => $footer, sizes => [ 9001 ]);
			my $name = 'trap 11: ' . join(', ', $scheme,
				"footer $footer", "chunked $chunked");

			my $r = $t->post("$route/$y->{hash}", \$y->{bytes},
				{}, chunked => $chunked);

			is(answer($r), $true, $name);
			is(length(stored($y->{hash})), $y->{stored_size},
				'no footer on disk');
			ok(decode_xorb(stored($y->{hash})) eq $data, 'data');
			is($t->head("$route/$y->{hash}")
				->header_value('Content-Length'),
				$y->{stored_size}, 'no footer in the length');
		}
	}
}

is($t->sql('SELECT count(*) FROM xet.xorbs WHERE stored_size'
	. ' <> get_byte(stored_ends, length(stored_ends) - 4)'
	. ' + get_byte(stored_ends, length(stored_ends) - 3) * 256'
	. ' + get_byte(stored_ends, length(stored_ends) - 2) * 65536'), 0,
	'trap 11: stored_size is the end of the last chunk');

# the server ignores the bytes of a footer; a xorb may contain a chunk several
# times

$x = fresh(footer => 'v1');
substr($x->{bytes}, -20, 16, 'n' x 16);
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $true,
	'a nonce in a footer');

$x = make_xorb('abcd' x 5000, sizes => [ 4000 ]);
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $true,
	'a chunk five times');
is($t->sql('SELECT chunk_count, raw_size FROM xet.xorbs ORDER BY id DESC'
	. ' LIMIT 1'), '5|20000', 'five chunks');

$x = make_xorb('z', sizes => [ 1 ]);
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $true,
	'one chunk of one byte');
is($x->{hash}, $x->{chunks}[0]{hash}, 'its hash is that of the chunk');

# --------------------------------------------------------------------------
# headers of requests

for my $type (undef, 'application/octet-stream', 'text/plain',
	'application/x-www-form-urlencoded')
{
	$x = fresh();
	is(answer($t->post("$route/$x->{hash}", \$x->{bytes},
		{ 'Content-Type' => $type })), $true,
		'Content-Type ' . ($type // 'missing'));
}

$x = fresh();
is(answer($t->post("$route/$x->{hash}", \$x->{bytes}, {}, http10 => 1)),
	$true, 'HTTP/1.0');

$x = fresh();
my $c = $t->http_start('POST', "$route/$x->{hash}", {
	'Content-Length' => length($x->{bytes}), 'Expect' => '100-continue' });
is($c->response('POST', interim => 1)->{status}, 100, '100 Continue');
$c->send($x->{bytes});
is(answer($c->response('POST')), $true, 'after 100 Continue');

# two uploads on the same connection, first one after the other, then pipelined

my @xorbs = map { fresh() } 1 .. 4;

for my $y (@xorbs[ 0, 1 ]) {
	is(answer($c->exchange('POST', "$route/$y->{hash}", {},
		\$y->{bytes})), $true, 'kept alive');
}

for my $y (@xorbs[ 2, 3 ]) {
	$c->start('POST', "$route/$y->{hash}",
		{ 'Content-Length' => length($y->{bytes}) });
	$c->send($y->{bytes});
}

is(answer($c->response('POST')), $true, 'pipelined, first');
is(answer($c->response('POST')), $true, 'pipelined, second');
$c->close();

# --------------------------------------------------------------------------
# a xorb becomes visible with its response, not earlier, and completely

$x = fresh();
$c = $t->http_start('POST', "$route/$x->{hash}",
	{ 'Content-Length' => length($x->{bytes}) },
	substr($x->{bytes}, 0, -1));

ok(!$c->closed(0.1), 'all but a byte');
is(scalar($t->copies($x->{hash})), 0, 'no copy yet');

my $lock = $t->pg_lock('xet.xorbs');

$c->send(substr($x->{bytes}, -1));
ok(wait_for(5, sub { $t->copies($x->{hash}) }),
	'the copy is written first');
is($c->read_some(1, 0.3), '', 'no response before the row');
$lock->unlock();
is(answer($c->response('POST')), $true, 'a response after the row');
is($t->sql("SELECT count(*) FROM xet.xorbs WHERE hash = '\\x"
	. plain_hash($x->{hash}) . "'"), 1, 'the row exists');
$c->close();

# --------------------------------------------------------------------------
# many concurrent uploads: each sends all but its last byte, then all last bytes
# are sent together

my @c;

for my $round (1 .. 3) {
	$x = fresh(footer => $round == 2 ? 'v1' : undef);

	@c = map { $t->http_start('POST', "$route/$x->{hash}",
		{ 'Content-Length' => length($x->{bytes}) },
		substr($x->{bytes}, 0, -1), port => 8081) } 1 .. 24;

	$_->send(substr($x->{bytes}, -1)) for @c;

	my %answers;
	$answers{answer($_->response('POST'))}++ for @c;
	$_->close() for @c;

	is_deeply(\%answers, { $true => 1, $false => 23 },
		'trap 34: one of 24 uploads inserts it');
	ok(wait_for(5, sub { $t->copies($x->{hash}) == 1 }), 'one file');
	ok(stored($x->{hash}) eq substr($x->{bytes}, 0, $x->{stored_size}),
		'its content');
	is($t->sql("SELECT count(*) FROM xet.xorbs WHERE hash = '\\x"
		. plain_hash($x->{hash}) . "'"), 1, 'one row');
}

my %pids = map { /^(\d+) 200 POST/ ? ($1 => 1) : () }
	split(/\n/, $t->read_file('pid.log'));
is(scalar keys %pids, 2, 'both workers took part');

# --------------------------------------------------------------------------
# crashes: a file without a row does no harm, whatever its contents

$x = fresh();
$t->put_copy("xorbs/default/@{[ substr($x->{hash}, 0, 2) ]}/$x->{hash}",
	'left');
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $true,
	'a file exists already');
is(scalar(my @left = $t->copies($x->{hash})), 2,
	'the existing file is unchanged');
$t->remove_copy($left[0]);
ok(stored($x->{hash}) eq $x->{bytes}, 'the xorb is in another file');
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $false, 'once more');

$x = fresh();
$lock = $t->pg_lock('xet.xorbs');
my $before = 0 + @{ [ $t->worker_pids() ] };

$c = $t->http_start('POST', "$route/$x->{hash}",
	{ 'Content-Length' => length($x->{bytes}) }, $x->{bytes});
ok(wait_for(5, sub { $t->copies($x->{hash}) }),
	'the copy exists, the row waits');

ok(wait_for(5, sub { $t->pg_blocked() }), 'the insert waits');

$t->kill_worker('KILL', $_) for $t->worker_pids();

# on a slow machine PostgreSQL may already have noticed that the worker is dead

$t->sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
	. " WHERE usename = 'xet' AND wait_event_type = 'Lock'");
ok(wait_for(10, sub { !$t->pg_blocked() }), 'worker and session are gone');
ok($c->closed(), 'no response');
$lock->unlock();

is($t->sql("SELECT count(*) FROM xet.xorbs WHERE hash = '\\x"
	. plain_hash($x->{hash}) . "'"), 0, 'no row');
ok(stored($x->{hash}) eq $x->{bytes}, 'but the copy exists');
$t->remove_copy($t->copy($x->{hash}));
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $true, 'a retry');
is(answer($t->post("$route/$x->{hash}", \$x->{bytes})), $false, 'another');
$c->close();

# --------------------------------------------------------------------------
# sizes: 64 MiB that do not compress, in as many chunks as allowed, with the
# footer of an old client: the largest possible body

$x = make_xorb(random_bytes(2, 64 << 20), scheme => 'none',
	sizes => [ 8192 ], footer => 'v0', large => 1);

is($x->{stored_size}, (64 << 20) + (64 << 10), 'a full xorb');
$r = $t->post("$route/$x->{hash}", \$x->{bytes}, {}, timeout => 60);
is(answer($r), $true, 'trap 15: 64 MiB of data and the headers');
is(length(stored($x->{hash})), $x->{stored_size}, 'stored');
is($t->sql('SELECT max(chunk_count), max(raw_size), max(stored_size)'
	. ' FROM xet.xorbs'), '8192|' . (64 << 20) . "|$x->{stored_size}",
	'its row');
undef $x;

# one gigabyte of zeros, in a body that repeats one small chunk record; the hash
# was computed from the full gigabyte

my $zeros = make_xorb("\0" x 131072, scheme => 'lz4', sizes => [ 131072 ]);
my $body = $zeros->{bytes} x 8192;
my $hash = '2744b90dab2d73b893761f0ebdbc90531a38157c5d3f1d5c338439abcc60b1a1';

$r = $t->post("$route/$hash", \$body, {}, timeout => 60);
is(answer($r), $true, 'trap 16: 1 GiB of data in ' . length($body)
	. ' bytes');
is($t->sql('SELECT max(raw_size) FROM xet.xorbs'), 1 << 30, 'its row');

# --------------------------------------------------------------------------
# memory: a worker holds only parts of bodies

$x = make_xorb(random_bytes(3, 12 << 20), scheme => 'none');
my $y = make_xorb(random_bytes(4, 12 << 20), scheme => 'none');

sub rss {
	return sum0(map { $t->rss($_) } $t->worker_pids());
}

@c = ();
$before = rss();

for my $n (1 .. 16) {
	my $z = $n % 2 ? $x : $y;

	push @c, $t->http_start('POST', "$route/$z->{hash}",
		{ 'Content-Length' => length($z->{bytes}) },
		substr($z->{bytes}, 0, -1), port => 8081);
}

my $during = rss();
$c[$_]->send(substr(($_ % 2 ? $y : $x)->{bytes}, -1)) for 0 .. 15;

my @answers = sort map { answer($_->response('POST', timeout => 30)) } @c;
is_deeply(\@answers, [ ($false) x 14, ($true) x 2 ], '16 uploads of 12 MiB');
$_->close() for @c;

cmp_ok($during - $before, '<', 16 * 3 * 1024,
	'3 MiB of memory each, KiB');
cmp_ok(rss() - $before, '<', 16 * 3 * 1024, 'no more memory afterwards');
diag("RSS $before KiB, $during KiB, " . rss() . ' KiB')
	if $ENV{XET_TEST_VERBOSE};

is($t->sql('SELECT count(*) FROM xet.xorbs'), scalar(() =
	$t->files_in_store()), 'as many rows as files');

$t->done();
