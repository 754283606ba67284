#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A disk that is full.  An upload gets 507, or 413 for a xorb, with what is
# left and what it needs, changes nothing, leaves no temporary file, and
# succeeds as soon as there is space again.  What was stored before can still be
# read, and known data can be uploaded.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Net;

BEGIN { Test::Xet::Net->enter() }

use Test::Xet;
use Test::Xet::Process qw/ run_command /;

Test::Xet->folder('a small disk');

my $t = Test::Xet->new(workers => 2, log => 'info', allow => [
	qr/failed \(28: No space left on device\)/ ]);
my $disk = $t->store();
my $owner = (stat $disk)[4];

my ($failed, $out) = run_command([ 'mount', '-t', 'tmpfs', '-o', 'size=100m',
	'none', $disk ]);

die "mount: $out\n" if $failed;

chown($owner, -1, $disk);
$t->run();

my $small = random_bytes(1, 5_000_000);
my $large = random_bytes(2, 30_000_000);
my $first = put($small);

is($first->{status}, 200, 'a file');

my $before = names();
my @rows = $t->rows();

fill(8_000_000);

my $r = put($large);

is($r->{status}, 507, 'no space for a file') or diag($r->summary());
is($r->json()->{error}{code}, 'insufficient_storage', 'code');
like($r->json()->{error}{message}, qr/^no\ space\ left\ in\ the\ store:\ \d+
	\ bytes\ are\ left,\ and\ the\ upload\ has\ 30000000$/x,
	'what is left, and the size');

my ($left) = $r->json()->{error}{message} =~ /: (\d+) bytes/;

cmp_ok($left, '<=', 8_000_000, 'the rest is that of the disk');
is(names(), $before, 'no file is left');
is_deeply([ $t->rows() ], \@rows, 'no row is left');

my $xorb = make_xorb(random_bytes(3, 20_000_000), scheme => 'none');

$r = $t->post("/api/v1/xorbs/default/$xorb->{hash}", \$xorb->{bytes});
is($r->{status}, 413, 'no space for a xorb') or diag($r->summary());
is($r->json()->{error}{code}, 'insufficient_storage', 'a xorb: code');
ok($r->header_value('Retry-After'), 'a xorb: it may be repeated later');
like($t->log(), qr/\[error\]\ .*\ xet:\ 413\ insufficient_storage:
	\ no\ space\ left/x, 'a xorb: logged');
like($r->json()->{error}{message}, qr/:\ \d+\ bytes\ are\ left,
	\ and\ the\ upload\ has\ \d+$/x, 'a xorb: what is left, and the size');
is($r->{reason}, $r->json()->{error}{message},
	'a xorb: the reason phrase, which hf_xet prints');
is(names(), $before, 'a xorb: no file is left');

# what is there

is_deeply($t->download($first->json()->{hash}, size => length $small)
	->{errors}, [], 'a stored file can be read');
fill(0);
is(put($small)->{status}, 507, 'a disk without a free byte');
unlink("$disk/filler");

is(put($large)->{status}, 200, 'there is space again');
is($t->post("/api/v1/xorbs/default/$xorb->{hash}", \$xorb->{bytes})
	->{status}, 200, 'space for the xorb');

$t->done();

# --------------------------------------------------------------------------

sub put {
	my ($data) = @_;

	return $t->put('/api/v1/files', \$data);
}

# Fills the disk, except for some bytes.

sub fill {
	my ($rest) = @_;

	my (undef, $free) = run_command([ 'stat', '-f', '-c', '%a %S', $disk ]);
	my ($blocks, $size) = split(/ /, $free);
	my $bytes = -s "$disk/filler" // 0;

	open my $f, '>', "$disk/filler" or die "$disk/filler: $!\n";
	binmode $f;
	print $f 'x' x ($bytes + $blocks * $size - $rest);
	close $f;
}

# The files of the store.

sub names {
	my (undef, $list) = run_command([ 'find', $disk, '-type', 'f', '!',
		'-name', 'filler' ]);

	return join(' ', sort split(/\n/, $list));
}
