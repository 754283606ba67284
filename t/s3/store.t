#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A store in a bucket: uploads become objects.  The data is read back as files,
# as ranges of xorbs through nginx, and by presigned URLs.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(s3 => 1);

$t->run();

my $s3 = $t->s3();
my $file = $t->upload(mix(1, 30000000));

my $d = $t->download($file->{hash}, size => 30000000);

is_deeply($d->{errors}, [], 'what clients rely on');
ok($d->{data} eq mix(1, 30000000), 'the same bytes');

my $r = $t->get("/api/v1/files/$file->{hash}");

is($r->{status}, 200, 'file: status');
ok($r->{body} eq mix(1, 30000000), 'file: bytes');


my @names = sort keys %{ $s3->objects() };

is($names[0], 'a/prefix/identity', 'identity');
like($names[1], qr!^a/prefix/xorbs/default/(..)/\1[0-9a-f]{62}\.[0-9a-f]{8}$!,
	'a xorb has the name that it has in a folder');
is(scalar @names, 2, 'and that is all');

$t->done();
