package Test::Xet::Ztensor;

# Copyright (C) the ngx_http_xet_module authors

# Builds zTensor files of container 1 from descriptions.
#
#     my $file = zt_file([
#         [ 'w', { shape => [ 2, 3 ], data => $bytes } ],
#         [ 'm', { format => 'sparse_csr', shape => [ 4, 4 ], components => [
#             [ 'values', { dtype => 'f32', data => $bytes } ], ...
#         ] } ],
#     ]);
#
#     $file->{bytes}; $file->{offset}{'w/data'};
#
# A component has dtype (f32) and data.  offset, length, encoding and digest
# declare values that differ from the true ones.  Objects have attributes, a
# list of pairs of encoded CBOR.  Options: version, attributes, header (the
# magic), manifest => sub { changed manifest }.

use warnings;
use strict;

use parent qw/ Exporter /;

use JSON::PP ();

use Test::Xet::Bytes;

our @EXPORT = qw/
	cbor_array cbor_map cbor_text cbor_uint zstd_frame zt_args zt_file
	zt_footer zt_large
/;

sub head {
	my ($major, $n) = @_;

	$major <<= 5;

	return pack('C', $major | $n) if $n < 24;
	return pack('CC', $major | 24, $n) if $n < 1 << 8;
	return pack('Cn', $major | 25, $n) if $n < 1 << 16;
	return pack('CN', $major | 26, $n) if $n < 1 << 32;
	return pack('CQ>', $major | 27, $n);
}

sub cbor_uint { return head(0, $_[0]) }
sub cbor_text { return head(3, length($_[0])) . $_[0] }
sub cbor_array { return head(4, scalar(@_)) . join('', @_) }

# Encodes a map from pairs of a text and an encoded value.

sub cbor_map {
	my @pairs = @_;

	my $map = head(5, @pairs / 2);

	while (my ($key, $value) = splice(@pairs, 0, 2)) {
		$map .= cbor_text($key) . $value;
	}

	return $map;
}

sub attributes {
	my ($of) = @_;

	my $pairs = $of->{attributes};

	return $pairs ? (attributes => cbor_map(@$pairs)) : ();
}

# Returns the bytes as a zstd frame without a content size, as the reference
# writer makes it; its blocks are not compressed.

sub zstd_frame {
	my ($data) = @_;

	my $frame = "\x28\xb5\x2f\xfd\x00\x38";

	do {
		my $block = substr($data, 0, 65536, '');

		$frame .= substr(pack('V', length($block) << 3
			| (length($data) ? 0 : 1)), 0, 3) . $block;
	} while (length($data));

	return $frame;
}

sub zt_file {
	my ($objects, %o) = @_;

	my $bytes = ($o{header} // 'ZTEN1000') . "\0" x 56;
	my (@objects, %offset);

	for (@$objects) {
		my ($name, $object) = @$_;
		my @components;

		for (@{ $object->{components} || [ [ 'data', $object ] ] }) {
			my ($role, $c) = @$_;
			my $data = $c->{data} // '';

			$bytes .= "\0" x (-length($bytes) % 64);

			my $at = $c->{offset} // length($bytes);

			$offset{"$name/$role"} = $at;
			$bytes .= $data;

			push @components, $role => cbor_map(
				dtype => cbor_text($c->{dtype} // 'f32'),
				offset => cbor_uint($at),
				length => cbor_uint($c->{length}
					// length($data)),
				map { defined $c->{$_}
					? ($_ => cbor_text($c->{$_})) : ()
				} qw/ encoding digest /);
		}

		push @objects, $name => cbor_map(
			shape => cbor_array(map { cbor_uint($_) }
				@{ $object->{shape} || [] }),
			format => cbor_text($object->{format} // 'dense'),
			attributes($object),
			components => cbor_map(@components));
	}

	my $manifest = cbor_map(
		version => cbor_text($o{version} // '1.1.0'),
		attributes(\%o),
		objects => cbor_map(@objects));

	$manifest = $o{manifest}->($manifest) if $o{manifest};

	return {
		bytes => $bytes . $manifest . zt_footer(length($manifest)),
		manifest => length($bytes), offset => \%offset
	};
}

# Stores a large file in $t that has few different chunks: random bytes, then
# zeros, then a manifest.  It has tensors of 4 KiB each, in the order of their
# names; the first 256 are random, the rest are zeros.  Returns
# { hash, size, manifest, names, random, data => sub { of a tensor } }.
#
#     tensors  number of tensors, 100000
#     size     size of the data, 5 GiB

sub zt_large {
	my ($t, %o) = @_;

	my $n = $o{tensors} || 100000;
	my $xorb = 64 << 20;
	my $zeros = int(($o{size} || 5 << 30) / $xorb);

	# the first xorb holds all nonzero data: its tensors fill it

	my $random = 'ZTEN1000' . "\0" x 56 . random_bytes(17, 256 * 4096);

	$random .= "\0" x (-length($random) % 65536);

	my $step = int(($zeros * $xorb - 4096) / ($n - 256) / 64) * 64;
	my $digest = 'sha256:' . '0' x 64;
	my (@names, @offsets, @objects);

	for my $i (0 .. $n - 1) {
		push @names, sprintf('model.layers.%06d.weight', $i);
		push @offsets, $i < 256 ? 64 + 4096 * $i
			: length($random) + $step * ($i - 256);
		push @objects, $names[$i] => cbor_map(
			shape => "\x82\x10\x19\0\x40",
			format => cbor_text('dense'),
			components => cbor_map(data => cbor_map(
				dtype => cbor_text('f32'),
				offset => cbor_uint($offsets[$i]),
				length => cbor_uint(4096),
				digest => cbor_text($digest))));
	}

	my $end = cbor_map(version => cbor_text('1.1.0'),
		objects => cbor_map(@objects));
	my $size = length($random) + $zeros * $xorb + length($end) + 16;

	$end .= zt_footer(length($end));

	my @made = (make_xorb($random, large => 1, sizes => [ 65536 ]),
		make_xorb("\0" x $xorb, large => 1, sizes => [ 131072 ]),
		make_xorb($end, large => 1, sizes => [ 65536 ]));

	for my $x (@made) {
		my $r = $t->http('POST', "/api/v1/xorbs/default/$x->{hash}", {},
			\$x->{bytes}, timeout => 60);
		die "xorb: $r->{status} $r->{body}\n" if $r->{status} != 200;
	}

	my @terms = map { { xorb => $_->{hash}, start => 0,
		end => scalar @{ $_->{chunks} } } } $made[0],
		($made[1]) x $zeros, $made[2];

	my $shard = make_shard({ files => [ { terms => \@terms,
		verification => JSON::PP::true() } ], xorbs => \@made,
		footer => 'none' });

	my $r = $t->http('POST', '/api/v1/shards', {}, \$shard->{bytes},
		timeout => 60);
	die "shard: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return {
		hash => $shard->{files}[0]{hash}, size => $size,
		manifest => length($end) - 16, names => \@names,
		offsets => \@offsets,
		data => sub {
			my ($i) = @_;

			return $i < 256 ? substr($random, 64 + 4096 * $i, 4096)
				: "\0" x 4096;
		}
	};
}

sub zt_footer { return pack('Q<', $_[0]) . 'ZTEN1000' }

# Builds "?name=a%2Fb&i=..." from pairs; omits undefined values.

sub zt_args {
	my @pairs = @_;
	my @args;

	while (my ($key, $value) = splice(@pairs, 0, 2)) {
		next unless defined $value;

		$value =~ s/([^A-Za-z0-9._-])/sprintf('%%%02X', ord($1))/ge;
		push @args, "$key=$value";
	}

	return @args ? '?' . join('&', @args) : '';
}

1;
