#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# make dist: the sources in the archive, and the tag of a release.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";

use File::Temp qw/ tempdir /;
use Test::Xet::Process qw/ root slurp spew /;

my $dir = tempdir('xt-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($version) = slurp(root() . '/src/core/base/xet_base.h')
	=~ /^#define XET_VERSION\s+"(.*)"$/m;

$ENV{"GIT_${_}_NAME"} = 't', $ENV{"GIT_${_}_EMAIL"} = 't@localhost'
	for qw/ AUTHOR COMMITTER /;

my $name = "ngx_http_xet_module-$version";

# --------------------------------------------------------------------------
# the contents of the archive

my ($code, $out) = dist(root());

is($code, 0, 'dist') or diag($out);
is($out, "$dir/out/$name.tar.gz\n", 'names the file');

run("tar -xzf '$dir/out/$name.tar.gz' -C '$dir'");

my $tree = "$dir/$name";

ok(-e "$tree/$_", "has $_")
	for qw! config LICENSE Makefile README.md .ci/run .editorconfig
		.gitignore .github/workflows/tests.yml docs/releases.md
		docker/run.sh src/core/base/xet_base.h sql/0001_schema.sql
		t/ops/dist.t !;
ok(!-e "$tree/$_", "does not have $_") for qw! build .git docker/secrets !;

# --------------------------------------------------------------------------
# a release from the unpacked archive

git('init -q -b main');
git('add -A');
git('commit -q -m one');

my $first = git('rev-parse HEAD');

($code, $out) = dist($tree, TAG => 1);
is($code, 0, 'a release') or diag($out);
is(git("rev-parse 'v$version^{commit}'"), $first, 'tags the commit');
is(git("cat-file -t v$version"), "tag\n", 'with a tag that has a message');

($code, $out) = dist($tree, TAG => 1);
is($code, 0, 'the release again') or diag($out);

spew("$tree/README.md", "changed\n");
($code, $out) = dist($tree, TAG => 1);
isnt($code, 0, 'a tree with changes');
like($out, qr/the working tree has changes/, 'is refused');
is((dist($tree))[0], 0, 'and packed without a tag');

git('commit -q -a -m two');
($code, $out) = dist($tree, TAG => 1);
isnt($code, 0, 'another commit of the same version');
like($out, qr/the tag v\Q$version\E points to another commit/, 'is refused');
is(git("rev-parse 'v$version^{commit}'"), $first, 'the tag stays');

spew("$tree/src/core/base/xet_base.h", "#define XET_VERSION  \"7.0.0\"\n");
git('commit -q -a -m three');
($code, $out) = dist($tree, TAG => 1);
isnt($code, 0, 'a version without release notes');
like($out, qr/has no section 7\.0\.0/, 'is refused');

spew("$tree/docs/releases.md", "## 7.0.0\n");
git('commit -q -a -m four');
($code, $out) = dist($tree, TAG => 1);
isnt($code, 0, 'a version without an entry in the changelog');
like($out, qr/changelog has no entry for 7\.0\.0/, 'is refused');
is(git('tag'), "v$version\n", 'no other tag was made');

done_testing();

# --------------------------------------------------------------------------

sub dist {
	my ($from, %env) = @_;

	local @ENV{keys %env} = values %env;
	local $ENV{OUT} = "$dir/out";

	delete local $ENV{TAG} unless $env{TAG};

	my $said = qx{sh '$from/docker/package.sh' dist 2>&1};

	return ($? >> 8, $said);
}

sub git {
	my ($args) = @_;

	return run("git -C '$tree' $args");
}

sub run {
	my ($command) = @_;

	my $said = qx{$command};

	die "$command: $?\n" if $?;

	return $said;
}
