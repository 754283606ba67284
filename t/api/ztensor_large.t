#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A zTensor file of 5 GiB with 100,000 tensors, most of them zeros, so that the
# store holds little of it.  The server lists it page by page, finds tensors by
# name and number, and serves them, all in a few megabytes of memory.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::Ztensor;

my $tensors = 100000;
my $page = 10000;

my $t = Test::Xet->new(timeout => 600, workers => 1);

$t->run();

my $file = zt_large($t, tensors => $tensors);
my $base = "/api/v1/zt/$file->{hash}";
my ($worker) = $t->worker_pids();

cmp_ok($file->{size}, '>', 5 << 30, '5 GiB');

sub peak {
	return (slurp("/proc/$worker/status") =~ /^VmHWM:\s+(\d+)/m)[0] >> 10;
}

sub read_bytes {
	return (slurp("/proc/$worker/io") =~ /^rchar:\s+(\d+)/m)[0];
}

# The heap keeps memory that earlier requests of other kinds have used.  Only
# its growth after this point counts.

my $before = peak();

# a sanitizer keeps freed memory for a while

my $room = length($ENV{ASAN_OPTIONS} // '') ? 3 : 1;

my $r = $t->get("$base?limit=1", {}, timeout => 120);

is($r->{status}, 200, 'the first request');
is($r->json()->{count}, $tensors, 'all tensors');
is($r->json()->{size}, $file->{size}, 'its size');

my $first = peak() - $before;

# memory: 16 bytes for each object, 24 for each component, twice that while the
# arrays grow, and the reader's buffers

cmp_ok($first, '<', 24 * $room, "$first MiB to check the file");

wait_for(10, sub { $t->sql('select count(*) from xet.zt_files') == 1 });

# pages

my ($n, $wrong, $after) = (0, 0);

while (1) {
	$r = $t->get("$base?limit=$page"
		. (defined $after ? "&after=$after" : ''), {}, timeout => 60);
	last if $r->{status} != 200;

	# no JSON parser: in Perl it would take half a minute

	while ($r->{body} =~ /"i":(\d+),"name":"([^"]+)".*?"offset":(\d+)/g) {
		$wrong++ if $1 != $n || $2 ne $file->{names}[$n]
			|| $3 != $file->{offsets}[$n];
		$n++;
	}

	($after) = $r->{body} =~ /"next":(\d+)\}\z/;
	last unless defined $after;
}

is($n, $tensors, 'listed in pages');
is($wrong, 0, 'each entry is right');

my $all = peak() - $before;

cmp_ok($all, '<', 48 * $room, "$all MiB to list the file");

# tensors by name and by number, from anywhere in the file

$wrong = 0;

for my $i (0, 1, 255, 256, 31415, 50000, 99998, 99999) {
	my $want = $file->{data}->($i);

	for ("i=$i", "name=$file->{names}[$i]") {
		$r = $t->get("$base/data?$_");
		$wrong++ if $r->{status} != 200 || $r->{body} ne $want;
	}
}

is($wrong, 0, 'tensors by name and number');

my $io = read_bytes();

$r = $t->get("$base/data?name=$file->{names}[77777]");
$io = read_bytes() - $io;

is($r->{body}, "\0" x 4096, 'one tensor');
cmp_ok($io, '<', 1 << 20, "$io bytes read for one tensor");

is($t->get("$base/data?name=model.layers.1")->code(), '404 no_such_object',
	'no such name');
is(scalar(@{ $t->get("$base?prefix=model.layers.09999")->json()
	->{objects} }), 10, 'ten with a prefix');

$t->done();
