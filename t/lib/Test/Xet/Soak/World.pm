package Test::Xet::Soak::World;

# Copyright (C) the ngx_http_xet_module authors

# Creates the data of one part of a run: chunks, each in several encodings,
# xorbs made of the chunks, and files made of the xorbs.  Everything is derived
# from the seed and the number of the part.
#
#     chunks  { n, data, hash, len, records => { none, lz4, ... } }
#     xorbs   { name, hash, chunks => [ ... ] }
#     files   { name, hash, data, chunks => [ ... ], put,
#               terms => [ [ xorb, first chunk, end ] ], root }
#
# The first {naturals} chunks are cut from streams by the server's own rule;
# the other chunks are shorter, and cut anywhere.  put is true if all chunks of
# the file except the last one are of the first kind: a PUT of the file then
# produces exactly these chunks.  root is the xorb that contains exactly these
# chunks.

use warnings;
use strict;

use JSON::PP ();

use Test::Xet::Bytes;
use Test::Xet::Soak::Random;

my $stream = 12 << 20;
my $natural_max = 20000;

sub new {
	my ($class, $seed, $part) = @_;

	my $self = bless { seed => $seed, part => $part, chunks => [],
		xorbs => [], files => [], xorb => {}, file => {} }, $class;

	$self->make_chunks();
	$self->make_xorbs();
	$self->make_files();

	return $self;
}

sub random {
	my ($self, @label) = @_;

	return Test::Xet::Soak::Random->new($self->{seed}, 'world',
		$self->{part}, @label);
}

sub make_chunks {
	my ($self) = @_;

	my $rng = $self->random('chunks');
	my $base = $self->{seed} * 1000003 + $self->{part} * 17;
	my $streams = join('', random_bytes($base, $stream),
		mix($base + 1, $stream));
	my (@pieces, $at, %seen);

	for (@{ hash_file($streams)->{chunks} }) {
		push @pieces, substr($streams, $at // 0, $_->{raw_length})
			if $_->{raw_length} < $natural_max;
		$at += $_->{raw_length};
	}

	# the end of the stream, not the rule, has cut the last chunk

	pop @pieces;
	@pieces = grep { !$seen{$_}++ } @pieces;
	@pieces = @pieces[0 .. 29] if @pieces > 30;
	$self->{naturals} = scalar @pieces;

	push @pieces, substr($streams, $rng->int($stream * 2 - 7000),
		$rng->pick(1, 7, 8, 200, 1000, 4096, 6999)) for 1 .. 8;

	@pieces = (@pieces[0 .. $self->{naturals} - 1],
		grep { !$seen{$_}++ } @pieces[$self->{naturals} .. $#pieces]);

	my $sizes = join(',', map { length } @pieces);
	my $all = join('', @pieces);
	my $hashes = hash_file($all, sizes => $sizes)->{chunks};

	$self->{chunks} = [ map { { n => $_, data => $pieces[$_],
		len => length($pieces[$_]), hash => $hashes->[$_]{hash} } }
		0 .. $#pieces ];

	for my $scheme (grep({ defined } schemes()), 'auto') {
		my $made = make_xorb($all, sizes => $sizes, scheme => $scheme);

		$self->{chunks}[$_]{records}{$scheme} = substr($made->{bytes},
			$made->{chunks}[$_]{stored_start},
			$made->{chunks}[$_]{stored_end}
				- $made->{chunks}[$_]{stored_start})
			for 0 .. $#pieces;
	}
}

# Makes xorbs as lists of chunk numbers: some xorbs with one chunk, some that
# share chunks, one with the same chunk twice.

sub make_xorbs {
	my ($self) = @_;

	my $rng = $self->random('xorbs');
	my $n = $self->{naturals};
	my $tails = @{ $self->{chunks} } - $n;
	my @lists = map { [ $rng->int($n) ] } 1 .. 3;

	push @lists, [ $n + $rng->int($tails) ] for 1 .. 2;
	push @lists, [ map { $rng->int($n) } 1 .. 2 + $rng->int(4) ] for 1 .. 5;
	push @lists, [ $lists[0][0], map { $rng->int($n) } 1 .. 2 ];
	push @lists, [ map({ $rng->int($n) } 1 .. 9 + $rng->int(6)),
		$rng->chance(50) ? $n + $rng->int($tails) : () ] for 1 .. 2;
	push @lists, [ ($rng->int($n), $rng->int($n)) x 2 ];

	$self->add_xorb($_) for @lists;
	$self->{own} = scalar @{ $self->{xorbs} };
}

sub add_xorb {
	my ($self, $list) = @_;

	my @chunks = map { $self->{chunks}[$_] } @$list;
	my $all = hash_file(join('', map { $_->{data} } @chunks),
		sizes => [ map { $_->{len} } @chunks ]);

	my $xorb = $self->{xorb}{$all->{root}};
	return ($xorb, $all) if $xorb;

	$xorb = { name => "x$self->{part}." . @{ $self->{xorbs} },
		hash => $all->{root}, chunks => \@chunks };

	push @{ $self->{xorbs} }, $xorb;
	$self->{xorb}{$xorb->{hash}} = $xorb;

	return ($xorb, $all);
}

sub make_files {
	my ($self) = @_;

	my $rng = $self->random('files');
	my @xorbs = @{ $self->{xorbs} };

	$self->add_file([ $_, 0, scalar @{ $_->{chunks} } ]) for @xorbs;

	for (1 .. 10) {
		$self->add_file(map {
			my $xorb = $rng->pick(@xorbs);
			my $from = $rng->int(scalar @{ $xorb->{chunks} });

			[ $xorb, $from, $from + 1
				+ $rng->int(@{ $xorb->{chunks} } - $from) ];
		} 1 .. 1 + $rng->int(4));
	}
}

sub add_file {
	my ($self, @terms) = @_;

	my @chunks = map { my ($xorb, $from, $to) = @$_;
		@{ $xorb->{chunks} }[$from .. $to - 1] } @terms;
	my ($root, $all) = $self->add_xorb([ map { $_->{n} } @chunks ]);

	return if $self->{file}{$all->{hash}};

	my $file = {
		name => "f$self->{part}." . @{ $self->{files} },
		hash => $all->{hash}, terms => \@terms, chunks => \@chunks,
		data => join('', map { $_->{data} } @chunks), root => $root,
		put => !grep({ $_->{n} >= $self->{naturals} }
			@chunks[0 .. $#chunks - 1])
	};

	push @{ $self->{files} }, $file;
	$self->{file}{$file->{hash}} = $file;
}

# --------------------------------------------------------------------------
# encodings

# Returns a xorb's bytes, with each chunk in the given encoding: none, lz4, bg4;
# auto, whichever of these three the server would choose; "raw" and a number, an
# LZ4 frame of uncompressed blocks of that many bytes; or "mix", a random
# encoding for each chunk.

sub encode {
	my ($self, $xorb, $encoding, $rng) = @_;

	return join('', map { $self->record($_, $encoding eq 'mix'
		? encoding($rng, 1) : $encoding) } @{ $xorb->{chunks} });
}

sub encoding {
	my ($rng, $one) = @_;

	my $encoding = $rng->pick(grep({ defined } schemes()), 'raw',
		$one ? () : 'mix');

	return $encoding eq 'raw' ? 'raw' . (1 + $rng->int(9000)) : $encoding;
}

sub record {
	my ($self, $chunk, $encoding) = @_;

	return $chunk->{records}{$encoding} // do {
		my ($size) = $encoding =~ /^raw(\d+)$/;
		frame($chunk->{data}, $size);
	};
}

# Makes a chunk header and an LZ4 frame of uncompressed blocks.  Uses at most 64
# blocks, because the server rejects a frame that is far longer than its chunk.

sub frame {
	my ($data, $size) = @_;

	my $least = 1 + int(length($data) / 64);
	$size = $least if $size < $least;

	my $flags = pack('CC', 0x60, 0x40 + 0x10 * ($size % 4));
	my $frame = pack('V', 0x184d2204) . $flags
		. pack('C', xxh32($flags) >> 8 & 0xff)
		. join('', map { pack('V', length($_) | 0x80000000) . $_ }
			unpack("(a$size)*", $data))
		. pack('V', 0);

	return pack('C v C C v C', 0, length($frame) & 0xffff,
		length($frame) >> 16, 1, length($data) & 0xffff,
		length($data) >> 16) . $frame;
}

# Returns the XXH32 of data of less than four bytes.

sub xxh32 {
	my ($data) = @_;

	my $m = 0xffffffff;
	my $h = (374761393 + length($data)) & $m;

	for (unpack('C*', $data)) {
		$h = ($h + $_ * 374761393) & $m;
		$h = ((($h << 11) | ($h >> 21)) & $m) * 2654435761 & $m;
	}

	$h = ($h ^ $h >> 15) * 2246822519 & $m;
	$h = ($h ^ $h >> 13) * 3266489917 & $m;

	return $h ^ $h >> 16;
}

# --------------------------------------------------------------------------
# shards

# Makes a shard of files, whose terms are [ xorb, from, to ].
#
#     rows    0: without verification rows
#     verify  the verification hash to claim for each term

sub shard {
	my ($files, %o) = @_;

	return make_shard({ files => [ map { {
		verification => ($o{rows} // 1) ? JSON::PP::true
			: JSON::PP::false,
		terms => [ map { my ($xorb, $from, $to) = @$_; {
			xorb => $xorb->{hash}, start => $from, end => $to,
			chunks => [ map { { hash => $_->{hash},
				raw_length => $_->{len} } }
				@{ $xorb->{chunks} }[$from .. $to - 1] ],
			$o{verify} ? (verification => $o{verify}) : ()
		} } @{ $_->{terms} } ]
	} } @$files ] });
}

1;
