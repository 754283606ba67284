#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Sparse objects: a compressed component without a declared length is decoded if
# the length follows from other fields.  Indices are verified, and "ok" means
# that nothing was skipped.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Ztensor;

my $t = Test::Xet->new(
	timeout => 300,
	server => <<'EOC');
location /tight/ {
            xet_api;
            xet_auth            off;
            xet_api_base        /tight;
            xet_ztensor_limits  decode=100;
        }
EOC

$t->run();

sub zt {
	my ($hash, $route, @args) = @_;

	return $t->get("/api/v1/zt/$hash$route" . zt_args(@args));
}

# Returns a component of 64-bit integers, or of the given data.

sub c {
	my ($role, $dtype, @values) = @_;

	my $pack = { u64 => 'Q<*', i32 => 'l<*', u16 => 'S<*', f32 => 'f<*' };

	return [ $role, { dtype => $dtype,
		data => pack($pack->{$dtype}, @values) } ];
}

sub zstd {
	my ($c) = @_;

	return [ $c->[0], { %{ $c->[1] }, encoding => 'zstd',
		data => zstd_frame($c->[1]{data}) } ];
}

sub sparse {
	my ($name, $format, $shape, @components) = @_;

	return [ $name, { format => "sparse_$format", shape => $shape,
		components => \@components } ];
}

# --------------------------------------------------------------------------
# lengths

my $values = c('values', 'f32', 1, 2, 3);
my $indices = c('indices', 'u64', 0, 3, 1);
my $indptr = c('indptr', 'u64', 0, 2, 3);
my $coords = c('coords', 'i32', 0, 0, 1, 0, 3, 1);

my %plain = map { $_->[0] => $_->[1]{data} }
	$values, $indices, $indptr, $coords;

my @known = (
	sparse('values tell', 'csr', [ 2, 4 ], $values, zstd($indices),
		zstd($indptr)),
	sparse('indices tell', 'csr', [ 2, 4 ], zstd($values), $indices,
		zstd($indptr)),
	sparse('coo values', 'coo', [ 2, 4 ], $values, zstd($coords)),
	sparse('coo coords', 'coo', [ 2, 4 ], $coords, zstd($values))
);

# if no component has a length, only the length of the row pointers is known

my @unknown = (
	sparse('all', 'csr', [ 2, 4 ], zstd($indptr), zstd($indices),
		zstd($values)),
	sparse('coo all', 'coo', [ 2, 4 ], zstd($coords), zstd($values))
);

my $hash = $t->upload(zt_file([ @known, @unknown ])->{bytes})->{hash};

for my $o (@known) {
	my ($name, $object) = @$o;

	for my $c (@{ $object->{components} }) {
		my $r = zt($hash, '/data', name => $name, role => $c->[0],
			form => 'decoded');

		is($r->code(), 200, "$name: $c->[0]");
		is($r->{body}, $plain{$c->[0]}, "$name: $c->[0] decoded");
	}
}

for my $o (@unknown) {
	my ($name, $object) = @$o;

	for my $c (@{ $object->{components} }) {
		is(zt($hash, '/data', name => $name, role => $c->[0],
			form => 'decoded')->code(), $c->[0] eq 'indptr'
			? 200 : '422 decode_unavailable', "$name: $c->[0]");
	}
}

my $list = zt($hash, '')->json();

is_deeply([ map { my $c = $_->{components};
	map { $c->{$_}{decoded_length} } sort keys %$c }
	@{ $list->{objects} } ],
	[ 24, 24, 12, 24, 24, 12, 24, 12, 24, 12, undef, 24, undef,
	undef, undef ], 'lengths that are known');

my $r = zt($hash, '/verify');

ok($r->json()->{ok}, 'all of them verify') or diag($r->{body});

# --------------------------------------------------------------------------
# indices

sub verify {
	my ($name, $object, $errors) = @_;

	my $hash = $t->upload(zt_file([ $object ])->{bytes})->{hash};
	my $r = zt($hash, '/verify');
	my $json = $r->json();

	is_deeply($json->{objects}[0]{errors}, $errors, "$name: errors")
		or diag($r->{body});
	is(!!$json->{ok}, !@$errors, "$name: ok");

	return ($hash, $r);
}

my @bad = (
	[ 'a column too many', sparse('t', 'csr', [ 2, 4 ], $values,
		c('indices', 'u64', 0, 4, 1), $indptr) ],
	[ 'a negative column', sparse('t', 'csr', [ 2, 4 ], $values,
		c('indices', 'i32', 0, -1, 1), $indptr) ],
	[ 'pointers not from 0', sparse('t', 'csr', [ 2, 4 ], $values,
		$indices, c('indptr', 'u64', 1, 2, 3)) ],
	[ 'falling pointers', sparse('t', 'csr', [ 3, 4 ], $values, $indices,
		c('indptr', 'u64', 0, 2, 1, 3)) ],
	[ 'pointers not to the end', sparse('t', 'csr', [ 2, 4 ], $values,
		$indices, c('indptr', 'u64', 0, 2, 2)) ],
	[ 'compressed ones past the end', sparse('t', 'csr', [ 2, 4 ],
		zstd($values), zstd($indices),
		zstd(c('indptr', 'u64', 0, 2, 4))) ],
	[ 'a coordinate outside', sparse('t', 'coo', [ 2, 4 ], $values,
		c('coords', 'u16', 0, 3, 1, 1, 0, 3)) ],
	[ 'more coordinates than values', sparse('t', 'coo', [ 2, 4 ],
		zstd(c('coords', 'u16', (0) x 8)), zstd($values)) ]
);

for (@bad) {
	my ($name, $object) = @$_;
	my ($hash, $r) = verify($name, $object, [ 'invalid_indices' ]);

	wait_for(10, sub { $t->sql('select count(*) from xet.zt_reports r'
		. ' join xet.files f on f.id = r.file_id where f.size = '
		. length(zt_file([ $object ])->{bytes})) > 0 });

	is(zt($hash, '/verify')->{body}, $r->{body}, "$name: cached");
}

verify('as 1.1 leaves it: descending, and twice', sparse('t', 'csr', [ 2, 4 ],
	$values, c('indices', 'u64', 3, 3, 1), $indptr), []);

# components of two objects, interleaved over many chunks: each digest belongs
# to the right component

my $n = 300000;
my @columns = map { $_ % 7 } 1 .. $n;
my @rows = map { $_ * 100 } 0 .. $n / 100;

for my $last (6, 7) {
	$columns[-1] = $last;

	my ($v, $i, $p) = (c('values', 'f32', (1) x $n),
		c('indices', 'u64', @columns), c('indptr', 'u64', @rows));

	my ($hash, $r) = verify("a large one ends with $last",
		sparse('t', 'csr', [ $n / 100, 7 ], $p, $i, $v),
		$last == 7 ? [ 'invalid_indices' ] : []);
	my ($packed) = verify("compressed, it ends with $last",
		sparse('t', 'csr', [ $n / 100, 7 ], zstd($i), zstd($p),
		zstd($v)), $last == 7 ? [ 'invalid_indices' ] : []);

	is(!!zt($packed, '/verify', i => 0, role => 'indices')->json()->{ok},
		$last == 6, "indices alone, last index $last");
}

my $turns = zt_file([
	map { [ "o$_", { format => 'sparse_csr', shape => [ 2, 4 ],
		components => [ map { [ $_->[0], { %{ $_->[1] },
		offset => $_->[2], length => length($_->[1]{data}),
		data => '' } ] }
		[ @$values, 64 ], [ @$indices, 128 ], [ @$indptr, 192 ] ] } ] }
		0 .. 3,
] );

# all components share the same bytes

my $shared = join('', map { $_->[1]{data} . "\0" x (-length($_->[1]{data})
	% 64) } $values, $indices, $indptr);
my $bytes = $turns->{bytes};

substr($bytes, 64, 0) = $shared;
$r = zt($t->upload($bytes)->{hash}, '/verify')->json();

is($r->{checked}, 12, 'four objects of the same bytes');
ok($r->{ok}, 'and they are valid');

# --------------------------------------------------------------------------
# unchecked parts

my $small = zt_file([ [ 'd', { shape => [ 101 ], dtype => 'u8',
	encoding => 'zstd', data => zstd_frame('x' x 101) } ] ]);

$hash = $t->upload($small->{bytes})->{hash};
ok(zt($hash, '/verify')->json()->{ok}, 'decoded');

$r = $t->get("/tight/v1/zt/$hash/verify")->json();
is_deeply($r->{objects}[0]{errors}, [ 'decode_too_large' ], 'not decoded');
ok(!$r->{ok}, 'ok is false');

for ([ 'a digest of an unknown kind', { digest => 'blake3:00' } ],
	[ 'an encoding', { encoding => 'lz4' } ],
	[ 'a dtype', { dtype => 'x' } ], [ 'a format', { format => 'mine' } ])
{
	my ($name, $what) = @$_;

	$r = zt($t->upload(zt_file([ [ 't', { shape => [ 4 ], dtype => 'u8',
		data => '1234', %$what } ] ])->{bytes})->{hash}, '/verify')
		->json();

	ok(defined $r->{ok} && !$r->{ok}, "unknown $name");
}

# An object has the format name of the other container version.  The rules of
# that format do not apply then, and the server does not use values in
# arithmetic that those rules would refuse.

for my $shape ([], [ 2 ], [ 2, 4 ], [ 0 ]) {
	for my $format ('zt.sparse_coo/1', 'zt.sparse_csr/1', 'sparse_coo',
		'sparse_csr')
	{
		for my $data ('', pack('L<4', 0, 1, 2, 3)) {
			my $bytes = zt_file([ [ 'a', { shape => $shape,
				format => $format, components => [ map { [ $_,
					{ dtype => 'u32', data => $data } ] }
					qw/ coords indptr indices / ] } ] ])
				->{bytes};
			my $put = $t->http('PUT', '/api/v1/files', {}, \$bytes)
				->json();
			my $r = zt($put->{hash}, '/verify');
			my $name = "$format of [ @$shape ], "
				. length($data) . ' bytes';

			is($r->{status}, 200, $name);
			ok(!$r->json()->{ok}, "$name: not ok");
		}
	}
}

$t->done();
