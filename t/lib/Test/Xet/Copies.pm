package Test::Xet::Copies;

# Copyright (C) the ngx_http_xet_module authors

# Lists, reads, damages, creates and removes copies of xorbs in a test's store,
# a folder or a bucket, without telling the server.  Methods of Test::Xet.
#
#     my ($name) = $t->copies($hash);       # xorbs/default/ab/<hash>.<copy id>
#     my $name = $t->copy($hash);           # the only one
#
#     my $bytes = $t->copy_bytes($name);    # undef: not found
#     $t->put_copy($name, $bytes);          # creates or replaces it
#     $t->damage_copy($name, 1000, 'xx');   # overwrites bytes from that offset
#     $t->flip_copy($name, 1000);            # flips a bit of this byte
#     $t->cut_copy($name, 500);
#     $t->remove_copy($name);
#
#     $t->hide_store();                     # an empty store takes its place
#     $t->show_store();
#
# $t->conf_store() is the value of the client's XET_STORE and --store.
#
# A test that needs a folder as its store says so first:
#
#     Test::Xet->folder('files that are synced before they are renamed');

use warnings;
use strict;

use File::Path qw/ make_path remove_tree /;
use Test::More ();

use Test::Xet::Process qw/ slurp spew wait_for /;
use Test::Xet::State ();

# Returns the prefix of all keys in the bucket of a store.

sub PREFIX { return 'a/prefix/' }

# Returns whether tests use a bucket as their store by default.

sub in_bucket { return ($ENV{XET_TEST_STORE} // '') eq 's3' }

sub folder {
	my ($class, $what) = @_;

	Test::More::plan(skip_all => "a store in a folder: $what")
		if in_bucket();
}

# Returns the names of the store's files, without identity and temporary data.

sub files_in_store {
	my ($self) = @_;

	return grep { !m!^(?:tmp/|staging/|identity$)! } $self->store_names();
}

# Returns unfinished writes: temporary files, multipart uploads, staged objects.

sub temp_files {
	my ($self) = @_;

	my $s3 = $self->s3()
		or return Test::Xet::State::files_below($self->store()
			. '/tmp');

	return () unless $s3->pid();

	# not every store can list multipart uploads

	my $lists = $s3->get('', query => { uploads => '' })->{status} == 200;

	return sort(Test::Xet::State::files_below($self->temp_path()),
		grep({ m!^staging/ours/! } $self->store_names()),
		map { "an upload of $_->{name}" }
			$lists ? $s3->uploads(PREFIX()) : ());
}

sub store_names {
	my ($self, $below) = @_;

	$below //= '';

	my @names;

	if (my $s3 = $self->s3()) {
		@names = map { substr($_, length(PREFIX())) }
			keys %{ $s3->objects(PREFIX() . $below) };

	} else {
		my ($folder) = $below =~ m!^((?:.*/)?)!;

		@names = grep { index($_, $below) == 0 } map { "$folder$_" }
			Test::Xet::State::files_below($self->store()
				. "/$folder" =~ s!/\z!!r);
	}

	@names = sort @names;

	return @names;
}

# Returns the names of all copies of a xorb, not only of the one in its row.

sub copies {
	my ($self, $hash) = @_;

	return $self->store_names('xorbs/default/' . substr($hash, 0, 2)
		. "/$hash");
}

# Returns the name of the only copy of a xorb.  A background job removes a
# replaced copy after the response, so there may be two copies for a moment.

sub copy {
	my ($self, $hash) = @_;

	my @copies;

	wait_for(20, sub {
		@copies = $self->copies($hash);
		return @copies < 2;
	}) or die "@copies\n";

	return $copies[0] // die "no copy of $hash\n";
}

sub copy_bytes {
	my ($self, $name) = @_;

	if (my $s3 = $self->s3()) {
		my $r = $s3->get(PREFIX() . $name);

		die "GET $name: $r->{status} $r->{body}\n"
			unless $r->{status} =~ /^(?:200|404)\z/;

		return $r->{status} == 200 ? $r->{body} : undef;
	}

	return slurp($self->store() . "/$name", 1);
}

# Overwrites a file in place and keeps its owner: workers that have the file
# open see the change.

sub put_copy {
	my ($self, $name, $bytes) = @_;

	if (my $s3 = $self->s3()) {
		$s3->must('PUT', PREFIX() . $name, body => $bytes);
		$self->forget_copies();
		return;
	}

	my $path = $self->store() . "/$name";

	make_path($path =~ s!/[^/]*\z!!r);
	spew($path, $bytes);
}

sub damage_copy {
	my ($self, $name, $from, $bytes) = @_;

	my $whole = $self->copy_bytes($name) // die "no $name\n";

	substr($whole, $from, length($bytes)) = $bytes;
	$self->put_copy($name, $whole);
}

sub flip_copy {
	my ($self, $name, $at) = @_;

	my $whole = $self->copy_bytes($name) // die "no $name\n";

	substr($whole, $at, 1) ^= "\x20";
	$self->put_copy($name, $whole);
}

sub cut_copy {
	my ($self, $name, $size) = @_;

	my $whole = $self->copy_bytes($name) // die "no $name\n";

	$self->put_copy($name, substr($whole, 0, $size));
}

sub remove_copy {
	my ($self, $name) = @_;

	if (my $s3 = $self->s3()) {
		$s3->must('DELETE', PREFIX() . $name);
		$self->forget_copies();
		return;
	}

	unlink($self->store() . "/$name") or die "$name: $!\n";
}

# Copies the complete store into a folder, for a peer or a backup.

sub save_store {
	my ($self, $to) = @_;

	for my $name ($self->store_names()) {
		make_path("$to/$name" =~ s!/[^/]*\z!!r);
		spew("$to/$name", $self->copy_bytes($name));
	}
}

# Replaces the store by an empty folder or bucket, and restores it.

sub hide_store {
	my ($self) = @_;

	if ($self->s3()) {
		$self->{hidden} = { map { $_ => $self->copy_bytes($_) }
			$self->store_names() };
		$self->remove_copy($_) for keys %{ $self->{hidden} };

		# the server trusts a bucket's identity for 5 seconds

		sleep(6);
		return;
	}

	rename($self->store(), $self->store() . '.away') or die "rename: $!\n";
	mkdir($self->store()) or die "mkdir: $!\n";
}

sub show_store {
	my ($self) = @_;

	if ($self->s3()) {
		my $hidden = delete $self->{hidden};

		$self->put_copy($_, $hidden->{$_}) for keys %$hidden;
		return;
	}

	remove_tree($self->store());
	rename($self->store() . '.away', $self->store()) or die "rename: $!\n";
}

# Empties nginx's cache of slices of copies.  nginx caches them because copies
# never change; a test that changes a copy must see the change.

sub forget_copies {
	my ($self) = @_;

	my $cache = $self->dir() . '/cache';

	unlink("$cache/$_") for Test::Xet::State::files_below($cache);
}

1;
