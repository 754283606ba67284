package Test::Xet::Grant;

# Copyright (C) the ngx_http_xet_module authors

# What a client of upload grants computes: crc64($bytes) is their CRC-64/NVME as
# a decimal number.

use warnings;
use strict;

use Exporter qw/ import /;

our @EXPORT = qw/ crc64 /;

my $poly = 0x9a6c9329 << 32 | 0xac4bc9b5;
my @table = map {
	my $n = $_;

	$n = $n & 1 ? ($n >> 1) ^ $poly : $n >> 1
		for 1 .. 8;
	$n
} 0 .. 255;

sub crc64 {
	my ($bytes) = @_;

	my $crc = ~0;

	$crc = $table[($crc ^ $_) & 255] ^ ($crc >> 8)
		for unpack('C*', $bytes);

	return sprintf('%u', ~$crc);
}

1;
