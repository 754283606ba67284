#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The partial data that a download keeps: a signal does not remove it, and it
# stays usable after the server has stored a xorb again.  File names of any
# length are possible, although the names of partial files are longer.  A file
# gets its final name only after a sync.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ slurp spew /;
use Test::Xet::Stall;

use Digest::SHA qw/ sha256_hex /;
use Fcntl qw/ LOCK_EX LOCK_NB /;
use File::Temp qw/ tempdir /;
use JSON::PP ();

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 400,
	http => 'log_format bytes "$uri $status $body_bytes_sent";'
		. 'access_log %%DIR%%/bytes.log bytes;',
	locations => <<'EOC');
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            %%DATA%%
            limit_rate $rate;
        }

        set $rate 0;

        if (-f %%DIR%%/slow) {
            set $rate 1m;
        }
EOC

$t->run();

my $dir = tempdir(CLEANUP => 1);
my $out = "$dir/out";
my $slow = $t->dir() . '/slow';
my $seed = 20;

# Starts a download, and interrupts it after some chunks.

sub broken_off {
	my ($hash, $name) = @_;

	spew($slow, '');

	my $before = noted();
	my $run = xet_start($t, 'get', '--parallel', 1, '-o', $name, $hash);

	wait_for(60, sub { noted() > $before + 48 * 12 })
		or diag('nothing has come');
	kill('INT', $run->{pid});

	my $r = xet_wait($run);

	is($r->{code}, 130, 'interrupted');
	like($r->{err}, qr/bytes are kept in /, 'received data are kept');
	unlink($slow);
}

# Returns the total size of the state files, which record chunks.

sub noted {
	my $sum = 0;

	$sum += -s $_ || 0 for glob("$dir/*.xet-state");

	return $sum;
}

# Removes the copies of a file's xorbs and uploads the xorbs again, without
# compression, so that the server stores new copies.

sub healed {
	my ($file, $data, @which) = @_;

	my @sizes = map { $_->{raw_length} } @{ hash_file($data)->{chunks} };
	my ($pos, $n) = (0, 0);

	for my $xorb (@{ $file->{xorbs} }) {
		my @mine = splice(@sizes, 0, scalar(@{ $xorb->{chunks} }));
		my $len = 0;

		$len += $_ for @mine;

		my $bytes = substr($data, $pos, $len);

		$pos += $len;
		next if @which && !grep { $_ eq $xorb->{hash} } @which;

		my $again = make_xorb($bytes, scheme => 'none',
			sizes => \@mine);

		die "another xorb\n" if $again->{hash} ne $xorb->{hash};

		my $copy = $t->copy($xorb->{hash});

		$t->remove_copy($copy);

		my $r = $t->post("/api/v1/xorbs/default/$again->{hash}",
			\$again->{bytes});

		die "$r->{body}\n" if $r->{status} != 200;

		$n++ if $t->copy($xorb->{hash}) ne $copy;
	}

	return $n;
}

sub received {
	my ($from) = @_;

	my $sum = 0;

	for (split(/\n/, substr(slurp($t->dir() . '/bytes.log'), $from))) {
		$sum += $1 if m!^/xorbs/\S+ 206 (\d+)!;
	}

	return $sum;
}

# --------------------------------------------------------------------------
# a signal while kept data is verified.  A million wrong records precede the
# right records, so that the signal arrives during verification.

my $data = random_bytes($seed++, 12000000);
my $hash = $t->upload($data)->{hash};

broken_off($hash, $out);

my $state = slurp("$out.xet-state");
my $long = substr($state, 0, 48) . pack('Q<L<L<', 0, 131072, 131072)
	. "\0" x 32;

$long .= substr($long, 48) x 999999 . substr($state, 48);
spew("$out.xet-state", $long);

my $digest = sha256_hex(slurp("$out.xet-part"));
my $run = xet_start($t, 'get', '-o', $out, $hash);

ok(wait_for(60, sub {
	open(my $fh, '+<', "$out.xet-state") or die;
	return !flock($fh, LOCK_EX | LOCK_NB);
}), 'kept data are being verified');

kill('INT', $run->{pid});

my $r = xet_wait($run);

is($r->{code}, 130, 'a signal at the start');
is($r->{err}, "xet: $out: earlier data are kept in $out.xet-part; run the same"
	. " command to resume\n", 'and the message says so');
ok(-e "$out.xet-part" && sha256_hex(slurp("$out.xet-part")) eq $digest,
	'the kept data are unchanged');
is(-s "$out.xet-state", length($long), 'and so is the state file');

spew("$out.xet-state", $state);

my $from = -s $t->dir() . '/bytes.log';

is(xet($t, 'get', '-o', $out, $hash)->{code}, 0, 'the same command');
ok(slurp($out) eq $data, 'gets the file');
cmp_ok(received($from), '<', 12000000 - 10 * 8192, 'and is resumed');

# --------------------------------------------------------------------------
# the server has stored the xorbs again, in another encoding

for my $chunks (1000, 30) {
	unlink($out);
	$data = mix($seed++, 9000000);

	my $file = $t->upload($data, scheme => 'lz4', xorb_chunks => $chunks);

	broken_off($file->{hash}, $out);
	is(healed($file, $data), @{ $file->{xorbs} }, 'healed');

	$r = xet($t, 'get', '-o', $out, $file->{hash});
	is($r->{code}, 0, "stored anew, $chunks chunks: resumed");
	is($r->{err}, '', 'without a word');
	ok((slurp($out, 1) // '') eq $data, 'the file');
	is_deeply([ glob("$out.xet-*") ], [], 'nothing is left');
}

# the last xorb, which is not requested yet, is healed during the download

unlink($out);
$data = mix($seed++, 12000000);

my $file = $t->upload($data, scheme => 'lz4', xorb_chunks => 30);
my ($last) = reverse sort { raw_hash($a) cmp raw_hash($b) }
	map { $_->{hash} } @{ $file->{xorbs} };

spew($slow, '');
$run = xet_start($t, 'get', '--parallel', 1, '-o', $out, $file->{hash});
ok(wait_for(60, sub { noted() > 48 * 2 }), 'on the way');
$from = -s $t->dir() . '/bytes.log';
is(healed($file, $data, $last), 1, 'healed meanwhile');
unlink($slow);

$r = xet_wait($run);

is($r->{code}, 0, 'stored anew meanwhile');
is($r->{err}, '', 'without a word');
ok((slurp($out, 1) // '') eq $data, 'the file');
like(substr(slurp($t->dir() . '/bytes.log'), $from), qr!^/xorbs/\S+ 404 !m,
	'a copy was gone');

# a damaged copy that still decodes: the download is interrupted, so that its
# part contains damaged chunks, and then the copy is repaired

unlink($out);
$data = random_bytes($seed++, 9000000);
$file = $t->upload($data, scheme => 'none');

my $copy = $t->copy($file->{xorbs}[0]{hash});
my $good = $t->copy_bytes($copy);
my $bad = $good;

substr($bad, 1000, 1) ^= "\1";
$t->put_copy($copy, $bad);
broken_off($file->{hash}, $out);
$t->put_copy($copy, $good);

$r = xet($t, 'get', '-o', $out, $file->{hash});
is($r->{code}, 0, 'a copy that was damaged: resumed');
is($r->{err}, '', 'without a word');
ok((slurp($out, 1) // '') eq $data, 'the file');

# if the copy is not repaired, the damage is reported as usual

unlink($out);
$t->put_copy($copy, $bad);
broken_off($file->{hash}, $out);
$r = xet($t, 'get', '-o', $out, $file->{hash});
is($r->{code}, 1, 'a copy that is damaged still');
like($r->{err}, qr/\Axet: damaged: the content on the server .*\n\z/,
	'is reported');
is_deeply([ glob("$out*") ], [], 'nothing is left');
$t->put_copy($copy, $good);

# --------------------------------------------------------------------------
# long names

$data = random_bytes($seed++, 6000000);
$hash = $t->upload($data)->{hash};

my %names = ('255 bytes' => 'a' x 255, '246 bytes' => 'b' x 246,
	'in UTF-8' => "\xc3\xa9" x 127 . 'c');

for my $name (sort keys %names) {
	my $long = "$dir/$names{$name}";

	is(xet($t, 'get', '-o', $long, $hash)->{code}, 0, "$name: get");
	ok((slurp($long, 1) // '') eq $data, "$name: the file");
	is(xet($t, 'get', '--range', '5-9', '-o', $long, $hash)->{code}, 0,
		"$name: bytes of it");
	is(slurp($long, 1), substr($data, 5, 5), "$name: they are right");

	spew($long, $name);
	$r = xet($t, 'put', '--json', $long);
	is($r->{code}, 0, "$name: put");
	unlink($long);

	is(xet($t, { dir => $dir }, 'get', '--recursive',
		manifest($names{$name}, $hash, length($data)))->{code}, 0,
		"$name: of a manifest");
	ok((slurp($long, 1) // '') eq $data, "$name: the file");
	unlink($long);
	is_deeply([ glob("$dir/*.xet-*") ], [], "$name: nothing is left");
}

$r = xet($t, 'get', '-o', "$dir/" . 'a' x 256, $hash);
is($r->{code}, 3, '256 bytes: refused');
like($r->{err}, qr/: File name too long\n\z/, '256 bytes: reported');
is_deeply([ glob("$dir/aa*") ], [], '256 bytes: nothing is left');

# two long names with the same beginning: each download keeps its data and is
# resumed

my @alike = map { "$dir/" . 'd' x 254 . $_ } 1, 2;

broken_off($hash, $_) for @alike;
is(scalar(my @kept = glob("$dir/*.xet-part")), 2, 'a part for each');
is((grep { !m!/d+~[0-9a-f]{16}\.xet-part\z! } @kept), 0, 'of names that fit');

$from = -s $t->dir() . '/bytes.log';

for (@alike) {
	is(xet($t, 'get', '-o', $_, $hash)->{code}, 0, 'a long name: resumed');
	ok((slurp($_, 1) // '') eq $data, 'a long name: the file');
	unlink($_);
}

cmp_ok(received($from), '<', 2 * (6000000 - 10 * 8192), 'and is resumed');

# other users' links at the names of partial data are not followed, even for
# long names

spew("$dir/victim", 'mine');

my %codes;

for my $part (@kept) {
	symlink("$dir/victim", $part) or die;
	$codes{xet($t, 'get', '-o', $alike[0], $hash)->{code}}++;
	unlink($part, $alike[0]);
}

is_deeply(\%codes, { 0 => 1, 3 => 1 }, 'a link at one of the names');
is(slurp("$dir/victim"), 'mine', 'the victim has what it had');

# --------------------------------------------------------------------------
# a file gets its name only after a sync: while a sync hangs, the file has no
# name

my $stall = Test::Xet::Stall->new(dir => $dir);

for my $args ([], [ '--range', '100-2000000' ]) {
	unlink($out);
	$stall->hold('fdatasync');
	$run = xet_start($t, { env => $stall->env() }, 'get', @$args, '-o',
		$out, $hash);
	ok($stall->wait_held('fdatasync', 1, 60), "get @$args: is synced");
	ok(!-e $out, "get @$args: before it has its name");
	$stall->release('fdatasync');
	is(xet_wait($run)->{code}, 0, "get @$args: done");
	ok(-e $out, "get @$args: has its name");
}

$t->allow(qr/open\(\) .* failed/);
$t->done();

# --------------------------------------------------------------------------

sub manifest {
	my ($name, $hash, $size) = @_;

	my $path = "$dir/manifest";

	utf8::decode($name);
	spew($path, JSON::PP->new->utf8->encode({ file => $name,
		hash => $hash, size => $size }) . "\n");

	return $path;
}
