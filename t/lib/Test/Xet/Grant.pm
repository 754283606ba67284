package Test::Xet::Grant;

# Copyright (C) the ngx_http_xet_module authors

# Requests and uses upload grants as clients do.

use warnings;
use strict;

use parent qw/ Exporter /;

use Test::Xet::HTTP;

our @EXPORT = qw/ commit_path crc64 grant_body put_granted /;

# Returns the body of a grant request: the length and the checksum of the bytes.

sub grant_body {
	my ($bytes) = @_;

	return '{"length":' . length($bytes)
		. ',"checksum":{"algo":"crc64nvme","value":"'
		. crc64($bytes) . '"}}';
}

sub put_granted {
	my ($grant, $bytes) = @_;

	my ($addr, $port, $target) = $grant->{url}
		=~ m!^http://([^/:]+):(\d+)(/.*)!;

	return Test::Xet::HTTP->request($port, 'PUT', $target, {
		Host => "$addr:$port", %{ $grant->{headers} } }, $bytes,
		addr => $addr);
}

sub commit_path {
	my ($xorb, $grant) = @_;

	return "/v1/xorb-commits/default/$xorb->{hash}/grant/$grant->{id}";
}

# Returns the CRC-64/NVME of the bytes as a decimal number.

sub crc64 {
	my ($bytes) = @_;

	my $crc = ~0;
	my $poly = 0x9a6c9329 << 32 | 0xac4bc9b5;
	my @table = map {
		my $n = $_;

		$n = $n & 1 ? ($n >> 1) ^ $poly : $n >> 1
			for 1 .. 8;
		$n
	} 0 .. 255;

	$crc = $table[($crc ^ $_) & 255] ^ ($crc >> 8)
		for unpack('C*', $bytes);

	return sprintf('%u', ~$crc);
}

1;
