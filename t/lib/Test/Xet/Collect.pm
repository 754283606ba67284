package Test::Xet::Collect;

# Copyright (C) the ngx_http_xet_module authors

# Runs the collector for a test: calls its functions in PostgreSQL without a
# grace period.  Tests can't wait until clients have forgotten the responses
# that they received.

use warnings;
use strict;

use parent qw/ Exporter /;

our @EXPORT = qw/ collect collect_rows /;

# Collects unneeded files, xorbs and copies; returns the number of removed
# copies.

sub collect {
	my ($t) = @_;

	collect_rows($t);

	my @copies = map { [ split(/\|/) ] } $t->sql("SELECT encode(hash,"
		. " 'hex'), copy_id FROM xet.gc_copies(1000)");

	for (@copies) {
		my ($bytes, $copy_id) = @$_;

		# four numbers, the form in which hashes are printed

		my $hash = join('', map { unpack('H*', reverse(
			pack('H*', $_))) } unpack('(a16)*', $bytes));

		$hash .= sprintf('.%08x', $copy_id & 0xffffffff) if $copy_id;

		$t->remove_copy('xorbs/default/' . substr($hash, 0, 2)
			. "/$hash");
	}

	my ($hashes, $copy_ids) = map { my $i = $_; join(',', map { $_->[$i] }
		@copies) } 0, 1;

	$hashes =~ s/(\w+)/'\\x$1'/g;

	$t->sql("SELECT * FROM xet.gc_removed(ARRAY[$hashes]::bytea[],"
		. " ARRAY[$copy_ids]::integer[])");

	return scalar @copies;
}

# Collects only the rows of files and xorbs, but no copies.

sub collect_rows {
	my ($t) = @_;

	for (1 .. 100) {
		last if $t->sql('SELECT files + refs FROM xet.gc_files(1000)')
			eq '0';
	}

	$t->sql("SELECT * FROM xet.gc_xorbs('0', 1000)");
}

1;
