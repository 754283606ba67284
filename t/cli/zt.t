#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet zt: zTensor files by name, from the command line.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ slurp spew /;
use Test::Xet::Stall;
use Test::Xet::Ztensor;

use Digest::SHA qw/ sha256_base64 sha256_hex /;
use File::Temp qw/ tempdir /;

my $big = random_bytes(7, 400000);
my $digest = sha256_base64($big) . '=';

# a slow server, which sends the same digest with every object

my $t = Test::Xet->new(workers => 1, log => 'info', http => <<"EOC");
server {
        listen 127.0.0.1:%%PORT_8081%%;

        location /api/ {
            xet_api;
            xet_auth off;
            limit_rate 200k;
            add_header Repr-Digest "sha-256=:$digest:";
        }
    }
EOC

$t->run();

my $dir = tempdir(CLEANUP => 1);
my $out = "$dir/out";

# one frame with one block: the same byte 50 times

my $frame = "\x28\xb5\x2f\xfd\x20" . pack('C', 50)
	. substr(pack('V', 50 << 3 | 3), 0, 3) . 'r';

my $file = zt_file([
	[ 'a/b', { shape => [ 2 ], data => 'abcdefgh' } ],
	[ "a\0b", { shape => [ 1 ], data => '....' } ],
	[ 'big', { shape => [ 1000, 100 ], data => $big,
		digest => 'sha256:' . sha256_hex($big) } ],
	[ '', { shape => [], data => 'scal' } ],
	[ 'csr', { format => 'sparse_csr', shape => [ 2, 4 ], components => [
		[ 'values', { data => 'v' x 8 } ],
		[ 'indices', { dtype => 'u16', data => "\0\0\1\0" } ],
		[ 'indptr', { dtype => 'u16', data => "\0\0\1\0\2\0" } ] ] } ],
	[ 'packed', { shape => [ 50 ], dtype => 'u8', encoding => 'zstd',
		data => $frame } ]
]);

spew("$dir/good.zt", $file->{bytes});

my $r = xet($t, 'put', '--json', "$dir/good.zt");
my $hash = $r->{json}[0]{hash};

# --------------------------------------------------------------------------
# ls

$r = xet($t, 'zt', 'ls', $hash);
is($r->{code}, 0, 'ls') or diag($r->{err});
is($r->{out}, <<'EOT' =~ s/\|//gr, 'its lines');
     0 ok          f32      [2] 8 a/b
     1 ok          f32      [1] 4 a\x00b
     2 ok          f32      [1000,100] 400000 big
     3 ok          f32      [] 4 |
     4 ok          f32      [2,4] 18 csr
     5 ok          u8       [50] 10 packed
EOT

$r = xet($t, 'zt', 'ls', '--json', '--prefix', 'a', $hash);
is($r->{json}[0]{count}, 6, 'ls --json: the file');
is_deeply([ map { $_->{name} } @{ $r->{json} }[1 .. $#{ $r->{json} }] ],
	[ 'a/b', "a\0b" ], 'its objects with a prefix');

# more objects than one page

my $many = zt_file([ map { [ "t$_", { shape => [ 1 ],
	data => pack('V', $_), digest => 'sha256:'
	. sha256_hex(pack('V', $_ == 777 ? 0 : $_)) } ] } 0 .. 2500 ]);

spew("$dir/many.zt", $many->{bytes});
my $other = xet($t, 'put', '--json', "$dir/many.zt")->{json}[0]{hash};

$r = xet($t, 'zt', 'ls', '--json', $other);
is_deeply([ map { $_->{i} } @{ $r->{json} }[1 .. $#{ $r->{json} }] ],
	[ 0 .. 2500 ], 'several pages');

# --------------------------------------------------------------------------
# get

is(xet($t, 'zt', 'get', $hash, 'a/b')->{out}, 'abcdefgh', 'get');
is(xet($t, 'zt', 'get', $hash, '')->{out}, 'scal', 'the empty name');
is(xet($t, 'zt', 'get', $hash, '--index', 1)->{out}, '....', '--index');
is(xet($t, 'zt', 'get', $hash, 'csr', '--role', 'indptr')->{out},
	"\0\0\1\0\2\0", '--role');

for my $args ([], [ '--decoded' ]) {
	$r = xet($t, 'zt', 'get', '--json', @$args, '-o', $out, $hash, 'big');
	is($r->{code}, 0, "get @$args") or diag($r->{err});
	is($r->{json}[0]{size}, 400000, 'size');
	ok(slurp($out) eq $big, 'its bytes');
}

is(xet($t, 'zt', 'get', '--decoded', $hash, 'packed')->{out}, 'r' x 50,
	'compressed, decoded');
is(xet($t, 'zt', 'get', $hash, 'packed')->{out}, $frame,
	'compressed, as it is stored');

ok(xet($t, 'zt', 'get', '--rows', '10:12', $hash, 'big')->{out}
	eq substr($big, 4000, 800), '--rows');
ok(xet($t, 'zt', 'get', '--range', '5-70000', $hash, 'big')->{out}
	eq substr($big, 5, 69996), '--range');

# an object gets its name only after a sync: while a sync hangs, it has no name

{
	my $stall = Test::Xet::Stall->new(dir => $dir);

	unlink($out);
	$stall->hold('fdatasync');

	my $run = xet_start($t, { env => $stall->env() }, 'zt', 'get', '-o',
		$out, $hash, 'big');

	ok($stall->wait_held('fdatasync', 1, 60), 'an object is synced');
	ok(!-e $out, 'before it has its name');
	$stall->release('fdatasync');
	is(xet_wait($run)->{code}, 0, 'it is fetched');
	ok((slurp($out, 1) // '') eq $big, 'it is right');
}

# the server dies in the middle of a response: a download of stored bytes is
# resumed, and its digest is right; a download of decoded bytes starts again

for my $args ([], [ '--decoded' ]) {
	unlink($out);

	my $run = xet_start($t, { endpoint => $t->url('/api', 8081) }, 'zt',
		'get', @$args, '-o', $out, $hash, 'big');

	ok(wait_for(30, sub { grep { (-s $_) > 50000 } glob("$out.xet-*") }),
		"on the way @$args");
	$t->kill_worker('KILL');
	is(xet_wait($run)->{code}, 0, "a worker is killed @$args");
	ok(slurp($out) eq $big, 'the whole object');
}

unlink($out);

fails(1, qr/^xet: damaged: the SHA-256 of the received bytes differs/,
	'a digest that is wrong', { endpoint => $t->url('/api', 8081) },
	'get', '-o', $out, $hash, 'a/b');
fails(1, qr/: 404 no_such_object/, 'no such object', 'get', '-o', $out,
	$hash, 'c');
fails(4, qr/: 400 role_required/, 'a role is required', 'get', '-o', $out,
	$hash, 'csr');
fails(2, qr/use either OBJECT or --index$/, 'two names', 'get', $hash, 'a',
	'--index', 1);
fails(2, qr/get needs OBJECT or --index$/, 'no name', 'get', $hash);
fails(2, qr/cannot be combined with --decoded$/, 'a range of decoded bytes',
	'get', '--range', '0-1', '--decoded', $hash, 'big');
fails(2, qr/expected ls HASH/, 'no verb', 'burn', $hash);
fails(2, qr/must be 64 hexadecimal/, 'no hash', 'ls', 'xyz');
fails(1, qr/: 404 file_not_found/, 'no file', 'ls', 'ab' x 32);
is_deeply([ glob("$out*") ], [], 'nothing is left');

spew("$dir/plain", 'no tensors in it' x 100);
my $plain = xet($t, 'put', '--json', "$dir/plain")->{json}[0]{hash};

fails(4, qr/: 422 not_ztensor/, 'no zTensor file', 'ls', $plain);

# --------------------------------------------------------------------------
# verify

$r = xet($t, 'zt', 'verify', $hash, 'big');
is($r->{code}, 0, 'verify') or diag($r->{err});
is($r->{out}, "     2 ok          data=verified big\n"
	. "1 components, 400000 bytes: ok\n", 'what it says');

$r = xet($t, 'zt', 'verify', '--json', $other);
is($r->{code}, 1, 'verify: one is wrong');
is($r->{json}[777]{components}{data}, 'mismatch', 'which one');
ok(!$r->{json}[-1]{ok}, 'not ok');
is($r->{json}[-1]{checked}, 2501, 'all were looked at');

# --------------------------------------------------------------------------

$t->done();

# --------------------------------------------------------------------------

sub fails {
	my ($code, $line, $name, @args) = @_;

	my %o = ref $args[0] ? %{ shift @args } : ();
	my $result = xet($t, { %o }, 'zt', @args);

	is($result->{code}, $code, "$name: exit code") or diag($result->{err});
	like($result->{err}, $line, "$name: what it says");
	is($result->{err} =~ tr/\n//, 1, "$name: one line");
}
