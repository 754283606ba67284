#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The harness's protocol client and its data generators: the client accepts
# valid responses, and detects each violation of a rule; Test::Xet::Client
# numbers the rules.  The server is a plain nginx whose responses are files.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

Test::Xet->folder('files with rights and ranges of their own');

my $t = Test::Xet->new(xet => 0, locations => <<'EOF');
location /api/ {
            root          %%DIR%%;
            default_type  application/json;
            max_ranges    0;
        }

        location /xorbs/ {
        }

        location /plain/ {
            alias       %%STORE%%/xorbs/;
            max_ranges  1;
        }
EOF

$t->run();

# --------------------------------------------------------------------------
# bytes

is(sha256_hex(random_bytes(0, 1000000)), 'b3d0a1f7938cd4d8413a4dcffd4313e2'
	. 'e8ac0cb61cb1090eb140ea8e9154befb', 'random bytes');
is(substr(mix(3, 500000), 0, 1000), mix(3, 1000), 'mix');

my $h = hash_file(random_bytes(0, 1000000));

is(@{ $h->{chunks} }, 19, 'chunks');
is($h->{chunks}[1]{raw_length}, 134421 - 84493, 'chunk length');
is($h->{chunks}[0]{hash}, '6eca1e7dadaf08cca5d82d318c800f07'
	. 'c2ddcec115a7e8627e5edd9605b94b8d', 'chunk hash');
is(hash_file('')->{hash}, '0' x 64, 'empty file');

my $data = mix(5, 800000);

for my $scheme (grep({ defined } schemes()), 'auto') {
	my $xorb = make_xorb($data, scheme => $scheme);

	is($xorb->{stored_size}, length($xorb->{bytes}), "$scheme: size");
	is(xorb_info($xorb->{bytes})->{hash}, $xorb->{hash}, "$scheme: hash");
	ok(decode_xorb($xorb->{bytes}) eq $data, "$scheme: data");
}

for my $footer (qw/ v0 v1 /) {
	my $xorb = make_xorb($data, footer => $footer);

	cmp_ok($xorb->{stored_size}, '<', length($xorb->{bytes}),
		"footer $footer");
	is(xorb_info($xorb->{bytes})->{footer_size},
		length($xorb->{bytes}) - $xorb->{stored_size},
		"footer $footer, its size");
}

my $sized = make_xorb('x' x 250, sizes => [ 100, 10 ]);
is(join(' ', map { $_->{raw_length} } @{ $sized->{chunks} }),
	'100' . ' 10' x 15, 'sizes');

my $large = make_xorb('x' x 8193, sizes => [ 1 ], large => 1);
is(@{ $large->{chunks} }, 8193, 'a xorb with a chunk too many');
is($large->{hash}, hash_file('x' x 8193, sizes => [ 1 ])->{root},
	'its hash');
ok(!eval { make_xorb('x' x 8193, sizes => [ 1 ]); 1 },
	'rejected without "large"');

ok(!eval { xorb_info(substr($sized->{bytes}, 0, -1)); 1 }, 'bad xorb');
like($@, qr/truncated inside a chunk/, 'error of a bad xorb');

my $file = $t->upload($data, send => 0, xorb_chunks => 4,
	shard_footer => 'full');
my $shard = parse_shard($file->{shard});

is($file->{hash}, hash_file($data)->{hash}, 'file hash of a shard');
is($shard->{files}[0]{hash}, $file->{hash}, 'file in the shard');
is($shard->{files}[0]{size}, 800000, 'its size');
is($shard->{files}[0]{sha256}, sha256_hex($data), 'its SHA-256');
cmp_ok(scalar @{ $shard->{xorbs} }, '>', 1, 'xorbs in the shard');
is(@{ $shard->{files}[0]{terms} }, @{ $shard->{xorbs} }, 'terms');
is(@{ $shard->{files}[0]{verification} }, @{ $shard->{xorbs} },
	'verification');
is($shard->{footer}{footer_offset}, $shard->{size} - 200, 'footer');

my $key = '0123456789abcdef' x 4;
my $keyed = parse_shard(make_shard({ footer => 'js', key => $key,
	expires => 1900000000, xorbs => [ $sized ] })->{bytes});

is($keyed->{footer}{key}, $key, 'key of a dedup shard');
is($keyed->{footer}{expires}, 1900000000, 'its expiry');
is($keyed->{xorbs}[0]{chunks}[0]{hash}, keyed_hash($key,
	$sized->{chunks}[0]{hash}), 'a keyed chunk hash');

# --------------------------------------------------------------------------
# a server whose responses are files: two xorbs of 6 and 5 chunks of 1000 bytes

my @xorbs = map {
	make_xorb(random_bytes($_, $_ == 1 ? 6000 : 5000), sizes => [ 1000 ])
} 1, 2;

for (@xorbs) {
	$t->write_file("store/xorbs/$_->{hash}", $_->{bytes});
	chmod(0755, $t->store() . '/xorbs');
}

# terms: chunks 0-2 of the first xorb, 0-5 of the second, 4-6 of the first

my @parts = ([ 0, 0, 2 ], [ 1, 0, 5 ], [ 0, 4, 6 ]);
my $content = join('', map {
	my ($x, $from, $to) = @$_;
	decode_xorb($xorbs[$x]{bytes}, $from, $to);
} @parts);

sub range_of {
	my ($x, $from, $to) = @_;

	my $chunks = $xorbs[$x]{chunks};

	return {
		chunks => { start => $from, end => $to },
		bytes => {
			start => $chunks->[$from]{stored_start},
			end => $chunks->[$to - 1]{stored_end} - 1
		}
	};
}

sub entry {
	my ($x, @ranges) = @_;

	return {
		url => $t->url("/xorbs/$xorbs[$x]{hash}?r="
			. join(',', map { join('-', @$_) } @ranges)),
		ranges => [ map { range_of($x, @$_) } @ranges ]
	};
}

sub terms {
	my ($offset, @terms) = @_;

	return {
		offset_into_first_range => $offset,
		terms => [ map { {
			hash => $xorbs[$_->[0]]{hash},
			unpacked_length => ($_->[2] - $_->[1]) * 1000,
			range => { start => $_->[1], end => $_->[2] }
		} } @terms ]
	};
}

sub whole {
	return { %{ terms(0, @parts) }, xorbs => {
		$xorbs[0]{hash} => [ entry(0, [ 0, 2 ]), entry(0, [ 4, 6 ]) ],
		$xorbs[1]{hash} => [ entry(1, [ 0, 5 ]) ]
	} };
}

my $hash = 'ab' x 32;

sub answer {
	my ($plan, %o) = @_;

	my $json = ref $plan ? JSON::PP->new->canonical->encode($plan) : $plan;

	$t->write_file('api/v' . ($o{version} || 2) . "/reconstructions/$hash",
		$json);

	return $t->download($hash, %o);
}

sub good {
	my ($name, $plan, $want, %o) = @_;

	my $d = answer($plan, %o);

	is_deeply($d->{errors}, [], "$name: no rule broken");
	is($d->{status}, 200, "$name: status");
	ok(($d->{data} // '') eq $want, "$name: data");
}

good('whole', whole(), $content);
good('whole, size known', whole(), $content, size => 9000);

my $several = whole();
$several->{xorbs}{$xorbs[0]{hash}} = [ entry(0, [ 0, 2 ], [ 4, 6 ]) ];
good('two ranges in an entry', $several, $content);

my $v1 = { %{ terms(0, @parts) }, fetch_info => {} };
for my $x (0, 1) {
	$v1->{fetch_info}{$xorbs[$x]{hash}} = [ map { {
		url => $_->{url}, range => $_->{ranges}[0]{chunks},
		url_range => $_->{ranges}[0]{bytes}
	} } @{ whole()->{xorbs}{$xorbs[$x]{hash}} } ];
}
good('version 1', $v1, $content, version => 1);

sub part {
	return { %{ terms(500, [ 0, 1, 2 ], [ 1, 0, 3 ]) }, xorbs => {
		$xorbs[0]{hash} => [ entry(0, [ 1, 2 ]) ],
		$xorbs[1]{hash} => [ entry(1, [ 0, 3 ]) ]
	} };
}

good('range', part(), substr($content, 1500, 3000), range => [ 1500, 4499 ],
	size => 9000);
good('range past the end', do {
	my $plan = { %{ terms(0, [ 0, 4, 6 ]) }, xorbs => {
		$xorbs[0]{hash} => [ entry(0, [ 4, 6 ]) ] } };
}, substr($content, 7000), range => [ 7000, 99999 ], size => 9000);

is($t->download('00' x 32)->{status}, 404, 'unknown file');

# --------------------------------------------------------------------------
# violations of the rules

sub broken {
	my ($error, $name, $plan, $change, %o) = @_;

	$change->($plan);
	my $d = answer($plan, %o);

	ok(scalar(grep { $_ =~ $error } @{ $d->{errors} }), $name)
		or diag(explain($d->{errors}));
}

my ($one, $two) = map { $_->{hash} } @xorbs;
my @range = (range => [ 1500, 4499 ]);

broken(qr/no reconstruction/, 'no JSON', 'nonsense', sub {});
broken(qr/integer/, 'a float', '{"offset_into_first_range":0.0,"terms":[],'
	. '"xorbs":{}}', sub {});
broken(qr/malformed term/, 'a term without length', whole(),
	sub { delete $_[0]{terms}[0]{unpacked_length} });
broken(qr/malformed entry/, 'an entry without URL', whole(),
	sub { delete $_[0]{xorbs}{$one}[0]{url} });
broken(qr/malformed key/, 'an upper-case hash', whole(),
	sub { $_[0]{xorbs}{uc $one} = delete $_[0]{xorbs}{$one} });
broken(qr/rule 1: the offset/, 'rule 1: offset past the first term', part(),
	sub { $_[0]{offset_into_first_range} = 1000 }, @range);
broken(qr/rule 1: an offset into/, 'rule 1: offset of a whole file', whole(),
	sub { $_[0]{offset_into_first_range} = 1 });
broken(qr/rule 1: whole chunks before/, 'rule 1: not trimmed at the start', {
	%{ terms(1500, [ 0, 0, 2 ], [ 1, 0, 3 ]) }, xorbs => {
		$one => [ entry(0, [ 0, 2 ]) ], $two => [ entry(1, [ 0, 3 ]) ]
	}
}, sub {}, @range);
broken(qr/rule 1: whole chunks after/, 'rule 1: not trimmed at the end', {
	%{ terms(500, [ 0, 1, 2 ], [ 1, 0, 4 ]) }, xorbs => {
		$one => [ entry(0, [ 1, 2 ]) ], $two => [ entry(1, [ 0, 4 ]) ]
	}
}, sub {}, @range);
broken(qr/rule 2/, 'rule 2: a term too many', {
	%{ terms(500, [ 0, 1, 2 ], [ 1, 0, 3 ], [ 0, 4, 6 ]) }, xorbs => {
		$one => [ entry(0, [ 1, 2 ]), entry(0, [ 4, 6 ]) ],
		$two => [ entry(1, [ 0, 3 ]) ]
	}
}, sub {}, @range);
broken(qr/rule 3: a term/, 'rule 3: a term over two ranges', whole(), sub {
	$_[0]{xorbs}{$two} = [ entry(1, [ 0, 2 ]), entry(1, [ 3, 5 ]) ];
});
broken(qr/rule 3: .* not merged/, 'rule 3: touching ranges', whole(), sub {
	$_[0]{xorbs}{$two} = [ entry(1, [ 0, 2 ]), entry(1, [ 2, 5 ]) ];
});
broken(qr/rule 3: no entry/, 'rule 3: no entry', whole(),
	sub { delete $_[0]{xorbs}{$two} });
broken(qr/rule 4/, 'rule 4: one chunk start twice', whole(), sub {
	push @{ $_[0]{xorbs}{$two} }, entry(1, [ 0, 1 ]);
});
broken(qr/rule 5: 5 chunks/, 'rule 5: too many chunks', whole(), sub {
	$_[0]{xorbs}{$one}[0]{ranges}[0]{bytes}{end}
		= $xorbs[0]{chunks}[4]{stored_end} - 1;
	pop @{ $_[0]{terms} };
	pop @{ $_[0]{xorbs}{$one} };
});
broken(qr/rule 5: 1 chunks/, 'rule 5: too few chunks', whole(), sub {
	$_[0]{xorbs}{$one}[0]{ranges}[0]{bytes}{end}
		= $xorbs[0]{chunks}[0]{stored_end} - 1;
});
broken(qr/rule 5: xet_make/, 'rule 5: a chunk cut off', whole(), sub {
	$_[0]{xorbs}{$one}[0]{ranges}[0]{bytes}{end}--;
});
broken(qr/unpacked_length 999/, 'a wrong unpacked_length', whole(),
	sub { $_[0]{terms}[0]{unpacked_length} = 999 });
broken(qr/rule 7/, 'rule 7: a term is missing', whole(), sub {
	pop @{ $_[0]{terms} };
	pop @{ $_[0]{xorbs}{$one} };
}, size => 9000);
broken(qr/rule 8/, 'rule 8: one URL twice', whole(), sub {
	$_[0]{xorbs}{$one}[1]{url} = $_[0]{xorbs}{$one}[0]{url};
});
broken(qr/rule 10/, 'rule 10: a long URL', whole(),
	sub { $_[0]{xorbs}{$one}[0]{url} .= 'x' x 9000 });
broken(qr/no absolute URL/, 'a relative URL', whole(),
	sub { $_[0]{xorbs}{$one}[0]{url} =~ s!^http://[^/]+!! });
broken(qr/no term uses/, 'a xorb too many', terms(0, $parts[1]), sub {
	$_[0]{xorbs} = whole()->{xorbs};
});
broken(qr/out of order/, 'descending ranges in an entry', whole(), sub {
	$_[0]{xorbs}{$one} = [ entry(0, [ 4, 6 ], [ 0, 2 ]) ];
});
broken(qr/to several ranges/, 'no multipart', whole(), sub {
	$_[0]{xorbs}{$one} = [ entry(0, [ 0, 2 ], [ 4, 6 ]) ];
	$_[0]{xorbs}{$one}[0]{url} =~ s!/xorbs/!/plain/!;
});
broken(qr/status 404/, 'a URL that is not there', whole(),
	sub { $_[0]{xorbs}{$one}[0]{url} =~ s!/xorbs/!/none/! });

$t->write_conf(undef, locations => <<'EOF');
location /api/ {
            root          %%DIR%%;
            default_type  text/plain;
        }

        location /xorbs/ {
        }
EOF
$t->reload();

broken(qr/Content-Type text/, 'content type', whole(), sub {});
broken(qr/Accept-Ranges/, 'ranges of a plan', whole(), sub {});

# every other connection gets a different response

$t->write_conf(undef, http => <<'EOF', locations => <<'EOF');
map $connection $other {
        ~[02468]$  "/other";
        default    "";
    }
EOF
location /api/ {
            root          %%DIR%%$other;
            default_type  application/json;
            max_ranges    0;
        }

        location /xorbs/ {
            max_ranges    0;
        }
EOF
$t->reload();

my $other = whole();
push @{ $other->{terms} }, $other->{terms}[0];
$t->write_file("other/api/v2/reconstructions/$hash",
	JSON::PP->new->canonical->encode($other));

broken(qr/another structure/, 'rule 6: two answers', whole(), sub {},
	data => 0);
broken(qr/status 200/, 'a whole xorb instead of a range', whole(), sub {});

$t->done();
