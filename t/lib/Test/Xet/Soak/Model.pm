package Test::Xet::Soak::Model;

# Copyright (C) the ngx_http_xet_module authors

# Models who may read which files, which files must be readable, and what the
# run has damaged.
#
# A subject has a chunk if it sent the chunk in any body, or may have sent it:
# reading that chunk tells the subject nothing new.  A subject has brought a
# xorb or a file once the upload was acknowledged.  Whether a subject sees a
# file is "yes", "no", or "maybe" after a request whose response was lost, or
# after two concurrent requests.
#
# mode is "repo": each subject is a tenant; "token": every caller with a token
# may read everything; "store": no token is needed.
#
# A brought xorb may be collected as long as no file needs it.  Therefore a
# subject counts as having brought it only until a collector has run, or the
# subject's repo is deleted; a subject that is rejected after that sends the
# xorb again.  An acknowledged file exists until its deletion is acknowledged.
#
# In mode repo one subject may be "the whole", which uses a location without
# repos.  It sees the files of all repos.  Files that it registers belong to the
# store, and it deletes files that no repo has.  It may still see files that the
# last repo has released, until they are collected.
#
# Damage is recorded by the hash of the xorb.  A read of a file that uses a
# damaged xorb returns an error or the right bytes.  The damage ends with an
# acknowledged upload of the xorb, or of a file that is acknowledged after the
# damage.  Only a flipped bit may stay unnoticed until it is read; an
# acknowledgement before that read counts as if it came before the damage.

use warnings;
use strict;

sub new {
	my ($class, %o) = @_;

	return bless { %o, clock => 0, collected => -1, dropped => {},
		has => {}, brought => {}, sees => {}, acked => {},
		damage => {}, broken => {} }, $class;
}

# Advances the clock.  Concurrent requests have no order.

sub tick { return ++$_[0]->{clock} }

sub tenant {
	my ($self, $subject) = @_;

	return $subject if $subject eq ($self->{whole} // '');
	return $subject if $self->{mode} eq 'repo'
		|| $self->{mode} eq 'token' && $subject eq 'nobody';
	return 'all';
}

# --------------------------------------------------------------------------
# possession

sub learn {
	my ($self, $subject, @chunks) = @_;

	$self->{has}{$self->tenant($subject)}{$_->{hash}} = 1 for @chunks;
}

sub has {
	my ($self, $subject, @chunks) = @_;

	return 1 if $self->is_whole($subject);

	my $has = $self->{has}{$self->tenant($subject)};

	return !grep { !$has->{$_->{hash}} } @chunks;
}

sub brought {
	my ($self, $subject, $xorb) = @_;

	my $at = $self->{brought}{$subject}{$xorb->{hash}} // return 0;

	return $at > $self->{collected}
		&& $at > ($self->{dropped}{$subject} // -1);
}

# Call collected() after a collection without grace, and dropped() when a repo
# may have been deleted.

sub collected { $_[0]->{collected} = $_[0]->{clock} }

sub dropped { $_[0]->{dropped}{$_[1]} = $_[0]->{clock} }

# --------------------------------------------------------------------------
# files

sub sees {
	my ($self, $subject, $file) = @_;

	my $own = $self->{sees}{$self->tenant($subject)}{$file->{hash}}
		// 'no';

	return $own if $own eq 'yes' || !$self->is_whole($subject);

	my $repos = $self->in_repos($file);

	return $repos eq 'no' && ($own ne 'no' || $self->{ever}{$file->{hash}})
		? 'maybe' : $repos;
}

sub is_whole { return $_[1] eq ($_[0]->{whole} // '') }

# Returns whether any repo has a file: "yes", "no" or "maybe".

sub in_repos {
	my ($self, $file) = @_;

	my @states = map { $self->{sees}{$_}{$file->{hash}} // 'no' }
		grep { !$self->is_whole($_) } keys %{ $self->{sees} };

	return (grep { $_ eq 'yes' } @states) ? 'yes'
		: (grep { $_ eq 'maybe' } @states) ? 'maybe' : 'no';
}

# Returns whether another subject may see the effect of a subject's request.

sub meet {
	my ($self, @two) = @_;

	return $self->tenant($two[0]) eq $self->tenant($two[1])
		|| grep { $self->is_whole($_) } @two;
}

sub see {
	my ($self, $subject, $file, $state) = @_;

	$self->{sees}{$self->tenant($subject)}{$file->{hash}} = $state;

	$self->{ever}{$file->{hash}} = $state ne 'no'
		if $self->is_whole($subject) || $state ne 'no';
}

# Returns the hashes of the files with this state for a subject; by default,
# with state "yes" or "maybe".

sub seen {
	my ($self, $subject, $state) = @_;

	my $sees = $self->{sees}{$self->tenant($subject)} || {};

	return grep { $sees->{$_} eq ($state // $sees->{$_})
		&& $sees->{$_} ne 'no' } sort keys %$sees;
}

# Records an acknowledged registration: after it the file is readable, even if
# data was damaged before.

sub acked_file {
	my ($self, $subject, $file, $state) = @_;

	$self->see($subject, $file, $state);
	$self->{acked}{$file->{hash}} = $self->{clock};
}

sub acked_xorb {
	my ($self, $subject, $xorb) = @_;

	$self->{brought}{$subject}{$xorb->{hash}} = $self->{clock};
	$self->healed($xorb->{hash});
}

# --------------------------------------------------------------------------
# damage

sub damaged {
	my ($self, $hash, $kind) = @_;

	$self->{broken}{$hash} = 1;
	$self->{damage}{$hash} = { kind => $kind, at => $self->{clock},
		noticed => $kind ne 'flip', uploads => 0 };
}

# Ends the damage of a xorb after an upload.  A flipped bit is healed only if
# the server has recorded the damage before the upload.  It may do so only after
# the response that reports the damage, so the first upload after that response
# may come too early, and only the second one counts.

sub healed {
	my ($self, $hash) = @_;

	my $damage = $self->{damage}{$hash} or return;

	delete $self->{damage}{$hash} if $damage->{kind} ne 'flip'
		|| $damage->{noticed} && ++$damage->{uploads} >= 2;
}

# Returns whether a read of a file of these xorbs may fail.  If only one of them
# is damaged, its damage counts as noticed.

sub may_fail {
	my ($self, $file, @xorbs) = @_;

	my $acked = $self->{acked}{$file->{hash}} // 0;
	my @bad = grep { $self->{damage}{$_} } @xorbs;

	$self->{damage}{$bad[0]}{noticed} = 1 if @bad == 1;

	return scalar grep { my $d = $self->{damage}{$_};
		$d->{at} >= $acked || $d->{kind} eq 'flip' } @bad;
}

1;
